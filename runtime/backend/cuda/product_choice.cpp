#include "backend/cuda/product_choice.h"

namespace st::cuda {
namespace {

constexpr int64_t kRowBytes = 16;
constexpr int64_t kAddedAtOnce = 8;  // products, by a tensor core of sm_80; later ones add 16
/// An eighth of half a unit of the last place, in units of fp32's 24 bits.
constexpr int64_t kCutsOfBf16 = int64_t{1} << (24 - 8 - 1 - 3), kCutsOfF16 = int64_t{1} << (24 - 11 - 1 - 3);

}  // namespace

bool is_for_library(const ProductKey& key) {
  if (bytes_of(key.in) != 2 || key.out != key.in || key.adds) return false;
  const int64_t a_row = key.transpose_a ? key.m : key.k, b_row = key.transpose_b ? key.k : key.n;
  for (const int64_t elements : {a_row, b_row, key.n})
    if (elements * bytes_of(key.in) % kRowBytes != 0) return false;
  return key.k <= kAddedAtOnce * (key.in == DType::bf16 ? kCutsOfBf16 : kCutsOfF16);
}

}  // namespace st::cuda

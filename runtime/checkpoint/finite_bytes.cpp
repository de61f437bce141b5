#include "checkpoint/finite_bytes.h"

#include <cstdint>
#include <cstring>

namespace st {
namespace {

/// True if all elements are finite, that is, none has all exponent bits set. No early exit, so that the loop is vectorised.
template <class Bits>
bool all_finite(Bits exponent, std::span<const std::byte> bytes) {
  bool finite = true;
  for (size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    finite &= (bits & exponent) != exponent;
  }
  return finite;
}

}  // namespace

bool are_finite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::f32:
      return all_finite<uint32_t>(0x7f80'0000, bytes);
    case DType::f64:
      return all_finite<uint64_t>(0x7ff0'0000'0000'0000, bytes);
    case DType::bf16:
      return all_finite<uint16_t>(0x7f80, bytes);
    case DType::f16:
      return all_finite<uint16_t>(0x7c00, bytes);
    default:
      return true;
  }
}

}  // namespace st

// Whose kernels compute a product: ours, or those of a library of NVIDIA's. Needs no toolkit.
#pragma once

#include <compare>
#include <cstdint>

#include "backend/cuda/product_tiles.h"
#include "base/dtype.h"

struct CUstream_st;  // of CUDA's runtime

namespace st::cuda {

/// One row-major product without gaps: C [m, n] = op(A) op(B), of which A is [m, k], or stored as [k, m]. All that a choice depends on.
struct ProductKey {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType in = DType::f32, out = DType::f32;
  bool bias = false;  // a vector of n elements of C's type
  bool adds = false;  // to C (beta)
  auto operator<=>(const ProductKey&) const = default;
};

/// Bytes of workspace of every product that a library may compute: a constant, so that a plan needs no library. On an H100 cuBLASLt offers
/// as many algorithms with none as with 32 MiB (tests/gpu/cublaslt_h100.jsonl), once sums that are split along K are masked off.
constexpr int64_t kLibraryWorkspace = int64_t{1} << 20;
constexpr int64_t kLibraryAlignment = 256;  // of its address, as cublasLtMatmul asks

/// Whether a library is asked by default: a function of the problem alone, the same on every rank and in every run.
/// - 16-bit operands with a result of their type. A library adds all of K in one accumulator of the tensor cores, which truncates: after k
///   products the error is some k / 8 units of fp32 on sm_80, k / 16 later. That may be an eighth of the result's rounding; an fp32 result
///   would show it.
/// - Rows of A, B and C at multiples of 16 bytes: odd ones take cuBLASLt 4 to 7 times as long on an H100.
/// The stages after a bias do not matter: they are ours, in a launch of their own after a library's, so that a fused op has the bits of
/// separate ones.
bool is_for_library(const ProductKey& key);

/// In the device's memory, but for alpha and beta.
struct ProductOperands {
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
  float alpha = 1, beta = 0;
  void* workspace = nullptr;  // kLibraryWorkspace
};

/// A library's kernels for one problem, with all that they need. Safe on several threads.
class LibraryProduct {
 public:
  virtual ~LibraryProduct() = default;
  /// Gives alpha op(A) op(B) + beta C + bias to a stream of its device, which is the current one. Allocates nothing.
  virtual void enqueue(CUstream_st* stream, const ProductOperands& operands) const = 0;
};

struct ChosenProduct {
  const LibraryProduct* library = nullptr;  // null: our kernels, in this tile
  ProductTile tile = {};                    // rows 0: the one that product_tile() chooses
};

/// The choices of a device. Safe on several threads.
class ProductChoices {
 public:
  virtual ~ProductChoices() = default;
  /// The first call for a problem makes what its kernels need, while its device is the current one; later ones look it up.
  virtual ChosenProduct of(const ProductKey& key) = 0;
  /// The library's algorithm of this number; null: it offers none. Likewise made once.
  virtual const LibraryProduct* by_library(const ProductKey& key, int algorithm) = 0;
};

}  // namespace st::cuda

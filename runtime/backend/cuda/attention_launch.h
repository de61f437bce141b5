// Shared by the host code of attention and of its gradients: the shape of a call, and the types of its kernels.
#pragma once

#include <cmath>

#include "backend/cuda/attention_limits.h"
#include "backend/cuda/attention_tiles.cuh"
#include "backend/cuda/fragments.cuh"
#include "backend/kernel_call.h"

namespace st::cuda {

inline AttentionShape attention_shape(Op op, const Call& call) {
  const Operand &q = call.in[0], &k = call.in[1];
  check_attention(op, q.dtype);
  const double given = call.attrs->real("scale");
  return {.batch = q.shape[0],
          .queries = q.shape[1],
          .heads = q.shape[2],
          .width = q.shape[3],
          .keys = k.shape[1],
          .groups = k.shape[2],
          .causal = call.attrs->flag("causal"),
          .dtype = q.dtype,
          .scale = given == 0 ? 1 / std::sqrt(static_cast<double>(q.shape[3])) : given};
}

template <class C, int kWidth>
struct AttentionTypes {
  using Compute = C;
  static constexpr int kMost = kWidth;  // columns of a tile
};

/// Calls body() with the types of the kernels for a shape.
template <class Body>
void with_attention_types(const AttentionShape& shape, const Body& body) {
  if (shape.dtype == DType::f64) return body(AttentionTypes<double, kWidestTile>{});
  if (shape.width <= 64) return body(AttentionTypes<float, 64>{});
  if (shape.width <= 128) return body(AttentionTypes<float, 128>{});
  body(AttentionTypes<float, kWidestTile>{});
}

/// Whether the kernels by tensor cores compute a shape: rows of heads must begin at 16 bytes.
inline bool by_tensor_cores(const AttentionShape& shape) {
  return bytes_of(shape.dtype) == 2 && shape.width % kChunk == 0 && shape.width > 0 && shape.width <= 128;
}

template <class T, int kWidth>
struct HalfTypes {
  using Element = T;
  static constexpr int kMost = kWidth;  // columns of a tile
};

/// Likewise for those kernels.
template <class Body>
void with_half_types(const AttentionShape& shape, const Body& body) {
  const bool is_bf16 = shape.dtype == DType::bf16;
  if (shape.width <= 64) return is_bf16 ? body(HalfTypes<Bf16, 64>{}) : body(HalfTypes<F16, 64>{});
  is_bf16 ? body(HalfTypes<Bf16, 128>{}) : body(HalfTypes<F16, 128>{});
}

}  // namespace st::cuda

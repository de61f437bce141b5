// The matrix products that `bench gemm` measures: C [m, n] = A [m, k] B [k, n], row-major, a transposed operand lying as its transpose.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace cli {

struct GemmShape {
  int64_t m, n, k;
  bool transposed_a = false, transposed_b = false;
  bool packed = false;  // measured with B packed beforehand too: a layer's weight, which many products use
};

/// "256x768x3072 fp32 transposed-b packed".
std::string name_of(const GemmShape& shape, bool packed);

inline double flops_of(const GemmShape& s) { return 2 * double(s.m) * double(s.n) * double(s.k); }

/// What is always measured, and what --shapes all adds.
std::span<const GemmShape> usual_gemm_shapes();
std::span<const GemmShape> more_gemm_shapes();

/// "MxNxK" of --shape, each 1 to 65536.
GemmShape gemm_shape_of(const std::string& text);

}  // namespace cli

// The matrix products that `bench gemm` measures: C [m, n] = A [m, k] B [k, n], row-major, a transposed operand lying as its transpose.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace cli {

enum class Element { fp32, bf16, fp16 };  // of A and B; C is fp32
const char* name_of(Element element);

struct GemmShape {
  int64_t m, n, k;
  bool transposed_a = false, transposed_b = false;
  bool plain = true;    // measured with B as it lies
  bool packed = false;  // measured with B packed beforehand: a layer's weight, which many products use
  Element element = Element::fp32;
};

/// "256x768x3072 fp32 transposed-b packed".
std::string name_of(const GemmShape& shape, bool packed);

inline double flops_of(const GemmShape& s) { return 2 * double(s.m) * double(s.n) * double(s.k); }

/// At most 40 products, a plain and a packed one being two, with some of every kind; and those that --shapes all adds. Products of 16 bits
/// have lists of their own: bf16's and fp16's are the same. The element is for the caller to set.
std::span<const GemmShape> usual_gemm_shapes(Element element);
std::span<const GemmShape> more_gemm_shapes(Element element);

/// MxNxK of --shape, plain and packed.
GemmShape gemm_shape_of(const std::string& text);

}  // namespace cli

// The matrix products that `bench gemm` measures: C [m, n] = A [m, k] B [k, n], row-major. A transposed operand is stored as its transpose.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cli {

enum class Element { fp32, bf16, fp16 };  // of A and B; C is fp32
const char* name_of(Element element);

struct GemmShape {
  int64_t m, n, k;
  bool transposed_a = false, transposed_b = false;
  bool plain = true;    // measured with B as stored
  bool packed = false;  // measured with B prepacked: a layer's weight, used by many products
  Element element = Element::fp32;
};

/// "256x768x3072 fp32 transposed-b packed".
std::string name_of(const GemmShape& shape, bool packed);

inline double flops_of(const GemmShape& s) { return 2 * double(s.m) * double(s.n) * double(s.k); }

/// At most 40 products (plain and packed count separately) that cover every kind; and the ones that --shapes all adds. bf16 and fp16 share
/// a list. The caller sets the element.
std::span<const GemmShape> usual_gemm_shapes(Element element);
std::span<const GemmShape> more_gemm_shapes(Element element);

/// Parses MxNxK[,MxNxK..] of --shape; measured plain and packed.
std::vector<GemmShape> gemm_shapes_of(const std::string& text);

}  // namespace cli

// A host's product with its arrays, and its exact result in double precision.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "held.h"

namespace st::test {

/// Numbers in [-1, 1), determined by the seed.
inline std::vector<float> numbers(int64_t n, uint32_t seed) {
  std::vector<float> made(static_cast<size_t>(n));
  for (float& x : made) x = static_cast<float>((seed = seed * 1664525U + 1013904223U) >> 8) * 0x1p-23F - 1.0F;
  return made;
}

/// A strided array of a batch of matrices of f32, bf16 or f16; the gaps between elements hold NaN.
class Matrices {
 public:
  Matrices(st_dtype dtype, int64_t batch, int64_t rows, int64_t columns, int64_t row, int64_t column, int64_t step, uint32_t seed)
      : dims{batch, rows, columns}, strides{step, row, column}, dtype_(dtype) {
    const int64_t extent = batch * rows * columns == 0 ? 0 : (batch - 1) * step + (rows - 1) * row + (columns - 1) * column + 1;
    bytes_.assign(static_cast<size_t>(extent * width()), '\xFF');
    const std::vector<float> values = numbers(batch * rows * columns, seed);
    for (int64_t i = 0; seed != 0 && i < static_cast<int64_t>(values.size()); ++i)
      set(i / (rows * columns), i / columns % rows, i % columns, values[static_cast<size_t>(i)]);
  }

  /// 16-bit elements hold fp32 values truncated, so that both conversions are exact here.
  double at(int64_t b, int64_t i, int64_t j) const {
    const char* from = bytes_.data() + place(b, i, j);
    if (dtype_ == ST_F32) {
      float value = 0;
      std::memcpy(&value, from, 4);
      return static_cast<double>(value);
    }
    uint16_t half = 0;
    std::memcpy(&half, from, 2);
    if (dtype_ == ST_BF16) {
      const uint32_t bits = uint32_t{half} << 16;
      float value = 0;
      std::memcpy(&value, &bits, 4);
      return static_cast<double>(value);
    }
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    const double size = exponent == 31  ? (mantissa != 0 ? std::nan("") : INFINITY)
                        : exponent == 0 ? std::ldexp(mantissa, -24)
                                        : std::ldexp(1024 + mantissa, exponent - 25);
    return (half & 0x8000) != 0 ? -size : size;
  }
  void set(int64_t b, int64_t i, int64_t j, float value) {
    char* to = bytes_.data() + place(b, i, j);
    if (dtype_ == ST_F32) {
      std::memcpy(to, &value, 4);
      return;
    }
    uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    auto half = static_cast<uint16_t>(bits >> 16);
    if (dtype_ == ST_F16) {
      const int exponent = static_cast<int>(bits >> 23 & 255) - 112;
      half = static_cast<uint16_t>(exponent <= 0 ? bits >> 16 & 0x8000
                                                 : (bits >> 16 & 0x8000) | uint32_t(exponent) << 10 | (bits >> 13 & 1023));
    }
    std::memcpy(to, &half, 2);
  }
  st_view view(bool batched = false) {
    const int skip = batched ? 0 : 1;
    return {dtype_, 3 - skip, dims + skip, strides + skip, bytes_.data(), static_cast<int64_t>(bytes_.size())};
  }
  const std::string& bytes() const { return bytes_; }
  /// Half a unit in the last place of a number around 1, the rounding error of results.
  double rounding() const { return dtype_ == ST_F32 ? 0x1p-24 : dtype_ == ST_BF16 ? 0x1p-8 : 0x1p-11; }

  int64_t dims[3], strides[3];

 private:
  int64_t width() const { return dtype_ == ST_F32 ? 4 : 2; }
  size_t place(int64_t b, int64_t i, int64_t j) const {
    return static_cast<size_t>((b * strides[0] + i * strides[1] + j * strides[2]) * width());
  }

  st_dtype dtype_;
  std::string bytes_;
};

struct GemmShape {
  int64_t m, n, k, batch = 1;
  bool transpose_a = false, transpose_b = false, column_major_c = false, shared_b = false, shared_a = false;
  int64_t gap = 0;  // unused elements after each row or column
  st_dtype a_dtype = ST_F32, b_dtype = ST_F32, c_dtype = ST_F32;
};

struct GemmCase {
  explicit GemmCase(const GemmShape& s)
      : shape(s),
        problem(filled(st_gemm_problem_init)),
        a(matrices(s.a_dtype, s.shared_a ? 1 : s.batch, s.m, s.k, s.transpose_a, 1)),
        b(matrices(s.b_dtype, s.shared_b ? 1 : s.batch, s.k, s.n, s.transpose_b, 2)),
        c(matrices(s.c_dtype, s.batch, s.m, s.n, s.column_major_c, 3)) {
    problem.m = s.m, problem.n = s.n, problem.k = s.k, problem.batch = s.batch;
    problem.a_dtype = s.a_dtype, problem.b_dtype = s.b_dtype, problem.c_dtype = s.c_dtype;
    problem.shared_a = s.shared_a ? 1 : 0, problem.shared_b = s.shared_b ? 1 : 0;
    problem.a_row = a.strides[1], problem.a_column = a.strides[2];
    problem.b_row = b.strides[1], problem.b_column = b.strides[2];
    problem.c_row = c.strides[1], problem.c_column = c.strides[2];
    if (s.batch > 1) problem.c_batch = c.strides[0];
    if (s.batch > 1 && !s.shared_a) problem.a_batch = a.strides[0];
    if (s.batch > 1 && !s.shared_b) problem.b_batch = b.strides[0];
  }

  HeldGemm plan(st_context* context, const st_gemm_schedule* schedule = nullptr) const {
    HeldGemm made;
    EXPECT_TRUE(works(st_gemm_plan_create(context, &problem, schedule, made.out())));
    return made;
  }
  /// Runs into c.
  st_status run(st_gemm* gemm, float alpha, float beta, st_packed* packed = nullptr, const st_epilogue* epilogue = nullptr) {
    const st_view of_a = a.view(shape.batch > 1 && !shape.shared_a), of_b = b.view(shape.batch > 1 && !shape.shared_b),
                  of_c = c.view(shape.batch > 1);
    if (packed != nullptr) return st_gemm_run_packed(gemm, alpha, &of_a, packed, beta, &of_c, epilogue);
    return st_gemm_run(gemm, alpha, &of_a, &of_b, beta, &of_c, epilogue);
  }
  HeldPacked packed(st_gemm* gemm) {
    HeldPacked made;
    const st_view of_b = b.view(shape.batch > 1 && !shape.shared_b);
    EXPECT_TRUE(works(st_gemm_pack(gemm, &of_b, made.out())));
    return made;
  }
  /// alpha A B + beta before, and the sum of the terms' magnitudes, which bounds its rounding error.
  std::pair<double, double> exact(int64_t e, int64_t i, int64_t j, double alpha, double beta, const Matrices& before) const {
    double sum = 0, size = 0;
    for (int64_t l = 0; l < shape.k; ++l) {
      const double term = a.at(shape.shared_a ? 0 : e, i, l) * b.at(shape.shared_b ? 0 : e, l, j);
      sum += term, size += std::abs(term);
    }
    sum *= alpha, size *= std::abs(alpha);
    if (beta != 0) sum += beta * before.at(e, i, j), size += std::abs(beta * before.at(e, i, j));
    return {sum, size};
  }
  /// fp32's error for k products, taken as 4 sqrt(k) roundings (k would be the proven bound), plus the last rounding.
  double bound(double value, double size) const {
    return 0x1p-24 * size * (4 + 4 * std::sqrt(static_cast<double>(shape.k))) + 2 * c.rounding() * std::abs(value) + 0x1p-25;
  }

  GemmShape shape;
  st_gemm_problem problem;
  Matrices a, b, c;

 private:
  Matrices matrices(st_dtype dtype, int64_t batch, int64_t rows, int64_t columns, bool transposed, uint32_t seed) const {
    const int64_t row = transposed ? 1 : columns + shape.gap, column = transposed ? rows + shape.gap : 1;
    const int64_t step = (transposed ? columns * column : rows * row) + shape.gap;
    return {dtype, batch, rows, columns, row, column, step, seed};
  }
};

}  // namespace st::test

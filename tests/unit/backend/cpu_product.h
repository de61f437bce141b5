// Compares one product of the cpu backend, on f32 or bf16 operands, with double precision.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "base/float16.h"
#include "cpu_kernel.h"

namespace st {

inline uint16_t half_of(DType type, float x) { return type == DType::bf16 ? bf16_of(x) : f16_of(x); }
inline float float_of(DType type, uint16_t x) { return type == DType::bf16 ? f32_of_bf16(x) : f32_of_f16(x); }

/// The numbers as a kernel reads them.
struct StoredNumbers {
  std::vector<float> floats;
  std::vector<uint16_t> halves;  // for 16-bit types
  StoredNumbers(const std::vector<float>& values, DType type) : floats(values) {
    if (type == DType::f32) return;
    for (const float x : values) halves.push_back(half_of(type, x));
  }
  void* data() { return halves.empty() ? static_cast<void*>(floats.data()) : halves.data(); }
};

struct Product {
  static constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

  GemmProblem p;
  std::vector<float> a, b, c, bias;  // values representable in the operands' type

  /// Row-major operands, stored transposed if requested, with `gap` unused columns at the end of each row.
  Product(DType type, int64_t m, int64_t n, int64_t k, bool transpose_a = false, bool transpose_b = false, int64_t gap = 0,
          int64_t batch = 1) {
    p.m = m, p.n = n, p.k = k, p.batch = batch;
    p.a_type = p.b_type = type;
    p.a = transpose_a ? MatrixStrides{1, m + gap} : MatrixStrides{k + gap, 1};
    p.b = transpose_b ? MatrixStrides{1, k + gap} : MatrixStrides{n + gap, 1};
    p.c = {n + gap, 1};
    p.a_batch = (transpose_a ? k : m) * ((transpose_a ? m : k) + gap);
    p.b_batch = (transpose_b ? n : k) * ((transpose_b ? k : n) + gap);
    p.c_batch = m * (n + gap);
    draw();
  }
  /// Fills the elements of A and B; everything else, and C, is NaN.
  void draw() {
    const auto random = [&](int64_t count, uint64_t seed) {
      std::vector<float> values = random_floats(count, seed);
      if (p.a_type == DType::bf16)
        for (float& x : values) x = f32_of_bf16(bf16_of(x));
      return values;
    };
    a.assign(static_cast<size_t>(p.a_batch * p.batch), kNaN);
    b.assign(static_cast<size_t>(p.b_batch * p.batch), kNaN);
    c.assign(static_cast<size_t>(p.c_batch * p.batch), kNaN);
    bias = random(p.n, 3);
    const std::vector<float> of_a = random(p.m * p.k * p.batch, 1), of_b = random(p.k * p.n * p.batch, 2);
    for (int64_t e = 0; e < p.batch; ++e) {
      for (int64_t i = 0; i < p.m * p.k; ++i) at_a(e, i / p.k, i % p.k) = of_a[static_cast<size_t>(e * p.m * p.k + i)];
      for (int64_t i = 0; i < p.k * p.n; ++i) at_b(e, i / p.n, i % p.n) = of_b[static_cast<size_t>(e * p.k * p.n + i)];
    }
  }

  float& at_a(int64_t e, int64_t i, int64_t k) { return a[static_cast<size_t>(e * p.a_batch + i * p.a.row + k * p.a.column)]; }
  float& at_b(int64_t e, int64_t k, int64_t j) { return b[static_cast<size_t>(e * p.b_batch + k * p.b.row + j * p.b.column)]; }
  size_t place_in_c(int64_t e, int64_t i, int64_t j) const { return static_cast<size_t>(e * p.c_batch + i * p.c.row + j * p.c.column); }

  void multiply(const CpuSet& set, int threads = 1, const TileSchedule& wanted = {}, bool packed = false) {
    Workers workers(threads);
    const TileSchedule schedule = set.gemm->schedule(p, wanted);
    GuardedScratch scratch(set.gemm->workspace(p, schedule, threads));
    GuardedScratch laid_out(packed ? set.gemm->packed_bytes(p, schedule) : 0);
    StoredNumbers of_a(a, p.a_type), of_b(b, p.b_type), of_c(c, p.c_type), of_bias(bias, p.c_type);
    GemmOperands x{of_a.data(), of_b.data(), of_c.data(), p.bias ? of_bias.data() : nullptr};
    if (packed) {
      set.gemm->pack(p, schedule, of_b.data(), laid_out.bytes().data(), workers);
      x.b = nullptr, x.packed_b = laid_out.bytes().data();
    }
    set.gemm->run(p, schedule, x, scratch.bytes(), workers);
    ASSERT_TRUE(scratch.is_whole() && laid_out.is_whole()) << set.name << " wrote past its memory, " << text_of(schedule);
    if (p.c_type == DType::f32) c = of_c.floats;
    for (size_t i = 0; i < of_c.halves.size(); ++i) c[i] = float_of(p.c_type, of_c.halves[i]);
  }

  /// Checks C against alpha * A B + beta * before + bias. The bound is for an fp32 sum of k products, exact ones for bf16: the sum of
  /// magnitudes times eps times a small number of roundings (4 sqrt(k) is never exceeded in practice; k is the proven bound). A bf16 C is
  /// rounded once more.
  void expect_product(const CpuSet& set, const std::vector<float>& before = {}) {
    const double unit = p.c_type == DType::bf16 ? 0x1p-8 : 0, growth = 4 + 4 * std::sqrt(static_cast<double>(p.k));
    for (int64_t i = 0; i < p.batch * p.m * p.n; ++i) {
      const int64_t e = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
      const size_t at = place_in_c(e, row, column);
      double sum = 0, size = 0;
      const auto add = [&](double term) { sum += term, size += std::abs(term); };
      for (int64_t k = 0; k < p.k; ++k) add(double{p.alpha} * double{at_a(e, row, k)} * double{at_b(e, k, column)});
      if (p.beta != 0) add(double{p.beta} * double{before[at]});
      if (p.bias) add(double{bias[static_cast<size_t>(column)]});
      ASSERT_LE(std::abs(double{c[at]} - sum), 0x1p-24 * size * growth + unit * std::abs(sum) * 1.001)
          << set.name << " " << name_of(p.a_type) << " " << p.m << "x" << p.n << "x" << p.k << " entry " << e << " at " << row << ", "
          << column;
    }
  }
};

}  // namespace st

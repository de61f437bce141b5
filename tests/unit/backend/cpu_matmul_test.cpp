// The cpu product, matmul and linear against products in double precision: every instruction set, every class of shape, strides, alpha and
// beta, 16-bit elements, and the same bits for any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/float16.h"
#include "cpu_kernel.h"

namespace st {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Product {
  GemmProblem p;
  std::vector<float> a, b, c, bias;
};

/// Row-major operands, transposed in memory where asked, with `gap` unused columns (of NaN) at the end of each row.
Product product(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, int64_t gap = 0) {
  Product x;
  x.p.m = m, x.p.n = n, x.p.k = k;
  x.p.a = transpose_a ? MatrixStrides{1, m + gap} : MatrixStrides{k + gap, 1};
  x.p.b = transpose_b ? MatrixStrides{1, k + gap} : MatrixStrides{n + gap, 1};
  x.p.c = {n + gap, 1};
  x.a.assign(static_cast<size_t>((transpose_a ? k : m) * ((transpose_a ? m : k) + gap)), kNaN);
  x.b.assign(static_cast<size_t>((transpose_b ? n : k) * ((transpose_b ? k : n) + gap)), kNaN);
  x.c.assign(static_cast<size_t>(m * (n + gap)), kNaN);
  x.bias = random_floats(n, 3);
  const std::vector<float> of_a = random_floats(m * k, 1), of_b = random_floats(k * n, 2);
  for (int64_t i = 0; i < m * k; ++i) x.a[static_cast<size_t>(i / k * x.p.a.row + i % k * x.p.a.column)] = of_a[static_cast<size_t>(i)];
  for (int64_t i = 0; i < k * n; ++i) x.b[static_cast<size_t>(i / n * x.p.b.row + i % n * x.p.b.column)] = of_b[static_cast<size_t>(i)];
  return x;
}

void multiply(const CpuSet& set, Product& x, int threads, const TileSchedule& wish = {}) {
  Workers workers(threads);
  const TileSchedule schedule = set.gemm->schedule(x.p, wish);
  GuardedScratch scratch(set.gemm->workspace(x.p, schedule, threads));
  set.gemm->run(x.p, schedule, {x.a.data(), x.b.data(), x.c.data(), x.p.bias ? x.bias.data() : nullptr}, scratch.bytes(), workers);
  ASSERT_TRUE(scratch.is_whole()) << set.name << " wrote past its workspace, " << text_of(schedule);
}

/// Checks C against alpha * op(A) op(B) + beta * before + bias; the bound is fp32's for a sum of k products (error grows like the sum of
/// magnitudes times eps times a small number of roundings; 4 sqrt(k) of them are never seen, k would be the proof).
void expect_product(const CpuSet& set, const Product& x, const std::vector<float>& before) {
  const GemmProblem& p = x.p;
  const double eps = 0x1p-24;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const double term =
            double{x.a[static_cast<size_t>(i * p.a.row + k * p.a.column)]} * double{x.b[static_cast<size_t>(k * p.b.row + j * p.b.column)]};
        sum += term;
        size += std::abs(term);
      }
      const auto at = static_cast<size_t>(i * p.c.row + j * p.c.column);
      sum *= double{p.alpha};
      size *= std::abs(double{p.alpha});
      if (p.beta != 0) sum += double{p.beta} * double{before[at]}, size += std::abs(double{p.beta} * double{before[at]});
      if (p.bias) sum += double{x.bias[static_cast<size_t>(j)]}, size += std::abs(double{x.bias[static_cast<size_t>(j)]});
      const double bound = eps * size * (4 + 4 * std::sqrt(static_cast<double>(p.k)));
      ASSERT_LE(std::abs(double{x.c[at]} - sum), bound) << set.name << " " << p.m << "x" << p.n << "x" << p.k << " at " << i << ", " << j;
    }
  }
}

constexpr int64_t kSizes[] = {1, 3, 37, 129, 257};

TEST(CpuProduct, EqualsDoublePrecisionOnAllClassesOfShapes) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t m : kSizes) {
      for (const int64_t n : kSizes) {
        for (const int64_t k : kSizes) {
          const auto way = static_cast<uint64_t>(m + n + k);
          Product x = product(m, n, k, way % 2 == 0, way % 3 == 0);
          multiply(set, x, 1);
          expect_product(set, x, {});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(CpuProduct, TakesBothTransposesAndRowsWithGaps) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t m : {1, 16, 17, 70}) {
      for (const bool transpose_a : {false, true}) {
        for (const bool transpose_b : {false, true}) {
          Product x = product(m, 83, 45, transpose_a, transpose_b, 5);
          multiply(set, x, 2);
          expect_product(set, x, {});
          for (size_t i = 0; i < x.c.size(); ++i) {
            if (static_cast<int64_t>(i) % x.p.c.row < x.p.n) continue;
            ASSERT_TRUE(std::isnan(x.c[i])) << set.name << " wrote into the gap at " << i;
          }
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(CpuProduct, AddsLongInnerDimensionsInPieces) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t m : {5, 40}) {
      Product x = product(m, 50, 5000, m == 40, false);
      multiply(set, x, 2);
      expect_product(set, x, {});
    }
  }
}

TEST(CpuProduct, NeverReadsCWhenBetaIsZeroAndAddsItOtherwise) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t k : {0, 60, 2500}) {
      for (const float beta : {0.0F, 1.0F, -0.5F}) {
        for (const bool bias : {false, true}) {
          Product x = product(30, 41, k, false, false);
          x.p.alpha = 0.75F;
          x.p.beta = beta;
          x.p.bias = bias;
          if (beta != 0) x.c = random_floats(30 * 41, 9);  // else C stays full of NaN
          const std::vector<float> before = x.c;
          multiply(set, x, 2);
          expect_product(set, x, before);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(CpuProduct, AddsTheFinishedSumToC) {
  for (const CpuSet& set : cpu_sets()) {
    Product alone = product(20, 33, 3000, false, false);
    Product added = alone;
    added.p.beta = 1;
    added.c = random_floats(20 * 33, 9);
    std::vector<float> expected = added.c;
    multiply(set, alone, 1);
    multiply(set, added, 1);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = alone.c[i] + expected[i];
    EXPECT_EQ(added.c, expected) << set.name;  // one rounding more, not another sum over k
  }
}

TEST(CpuProduct, WritesColumnMajorAndScatteredC) {
  for (const CpuSet& set : cpu_sets()) {
    for (const MatrixStrides c : {MatrixStrides{1, 23}, MatrixStrides{2 * 31, 2}}) {
      for (const int64_t k : {19, 2100}) {
        Product x = product(23, 31, k, false, true);
        x.p.c = c;
        x.c.assign(2 * 23 * 31, kNaN);
        multiply(set, x, 2);
        expect_product(set, x, {});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(CpuProduct, HasTheSameBitsForAnyNumberOfThreads) {
  for (const CpuSet& set : cpu_sets()) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{300, 700, 1500}, {8, 1500, 300}, {37, 1013, 511}}) {
      for (const bool transpose_b : {false, true}) {
        Product one = product(m, n, k, false, transpose_b), two = one, three = one;
        multiply(set, one, 1);
        multiply(set, two, 2);
        multiply(set, three, 3);
        EXPECT_EQ(one.c, two.c) << set.name;
        EXPECT_EQ(one.c, three.c) << set.name;
      }
    }
  }
}

/// Blocks of M that end in a few rows, blocks of N that end in part of a panel, pieces of K: each time what is packed changes.
TEST(CpuProduct, HasTheSameBitsForAnyBlocks) {
  for (const CpuSet& set : cpu_sets()) {
    for (const bool transpose_b : {false, true}) {
      const Product given = product(327, 150, 70, true, transpose_b, 3);
      for (const int64_t kc : {16, 70}) {
        Product base = given;
        multiply(set, base, 1, {.kc = kc});
        expect_product(set, base, {});
        for (const int64_t block_m : {28, 84, 140, 322})
          for (const int64_t block_n : {64, 96, 150})
            for (const LoopOrder order : {LoopOrder::n_k_m, LoopOrder::n_m_k})
              for (const int threads : {1, 2}) {
                Product x = given;
                multiply(set, x, threads, {.mc = 28, .nc = 32, .kc = kc, .block_m = block_m, .block_n = block_n, .order = order});
                ASSERT_EQ(std::memcmp(x.c.data(), base.c.data(), x.c.size() * sizeof(float)), 0)
                    << set.name << ", k " << kc << ", block " << block_m << "x" << block_n << ", " << threads << " threads";
              }
      }
    }
  }
}

/// Few rows read B where it lies, in widths that depend on their number; the smallest products pack nothing.
TEST(CpuProduct, HasTheSameBitsForAnyNumberOfRows) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t n : {31, 96, 130, 160, 224, 544}) {
      Product all = product(48, n, 1100, false, false);
      multiply(set, all, 1);
      for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 13, 15, 16, 17, 29, 40, 41}) {
        for (const int threads : {1, 2}) {
          Product few = all;
          few.p.m = m;
          few.c.assign(static_cast<size_t>(m * n), kNaN);
          multiply(set, few, threads);
          for (size_t i = 0; i < few.c.size(); ++i)
            ASSERT_EQ(all.c[i], few.c[i]) << set.name << " " << m << "x" << n << " at " << i << ", " << threads << " threads";
        }
      }
    }
  }
}

TEST(CpuProduct, HasTheSameBitsWhereverARowStands) {
  // Each row's sums are its own: a product of some of the rows gives the same bits for them (micro-batches of other sizes).
  for (const CpuSet& set : cpu_sets()) {
    Product all = product(100, 130, 900, false, false), few = all;
    few.p.m = 7;
    multiply(set, all, 1);
    multiply(set, few, 1);
    for (size_t i = 0; i < 7 * 130; ++i) ASSERT_EQ(all.c[i], few.c[i]) << set.name << " at " << i;
  }
}

// --- the ops ---------------------------------------------------------------------------------------------------------------------------

Operand operand(std::vector<float>& values, const Shape& shape) { return {values.data(), DType::f32, shape}; }

/// One [M, N] product of matmul's batch in double precision.
double element(const std::vector<float>& a, int64_t at_a, bool transpose_a, const std::vector<float>& b, int64_t at_b, bool transpose_b,
               int64_t m, int64_t n, int64_t k, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t l = 0; l < k; ++l) {
    sum += double{a[static_cast<size_t>(at_a + (transpose_a ? l * m + i : i * k + l))]} *
           double{b[static_cast<size_t>(at_b + (transpose_b ? j * k + l : l * n + j))]};
  }
  return sum;
}

TEST(CpuMatmul, BroadcastsLeadingDimensions) {
  struct Leading {
    Shape a, b, c;
  };
  const Leading cases[] = {{{}, {}, {}},
                           {{4}, {}, {4}},
                           {{}, {4}, {4}},
                           {{2, 3}, {2, 3}, {2, 3}},
                           {{2, 3}, {3}, {2, 3}},
                           {{2, 1, 3}, {1, 5, 1}, {2, 5, 3}},
                           {{2, 1}, {1, 3}, {2, 3}},
                           {{1, 1}, {4, 2}, {4, 2}},
                           {{0, 2}, {0, 2}, {0, 2}}};
  const int64_t m = 9, n = 21, k = 13;
  for (const CpuSet& set : cpu_sets()) {
    for (const Leading& lead : cases) {
      for (int way = 0; way < 4; ++way) {
        const bool ta = way % 2 != 0, tb = way / 2 != 0;
        const auto with = [](Shape shape, int64_t rows, int64_t columns) {
          shape.push_back(rows);
          shape.push_back(columns);
          return shape;
        };
        const Shape sa = with(lead.a, ta ? k : m, ta ? m : k), sb = with(lead.b, tb ? n : k, tb ? k : n), sc = with(lead.c, m, n);
        std::vector<float> a = random_floats(sa.elements(), 1), b = random_floats(sb.elements(), 2);
        std::vector<float> c(static_cast<size_t>(sc.elements()), kNaN);
        ASSERT_TRUE(
            run_kernel(set, Op::matmul, {operand(a, sa), operand(b, sb)}, {operand(c, sc)}, {{"transpose_a", ta}, {"transpose_b", tb}}, 2));
        const auto at = [&](const Shape& own, int64_t batch) {  // which matrix of an operand belongs to this one of c
          int64_t index = 0, step = 1;
          for (int32_t d = 1; d <= lead.c.rank(); ++d) {
            const int64_t size = lead.c[lead.c.rank() - d], i = batch % size;
            batch /= size;
            if (d > own.rank()) continue;
            if (own[own.rank() - d] != 1) index += i * step;
            step *= own[own.rank() - d];
          }
          return index;
        };
        for (int64_t i = 0; i < sc.elements(); ++i) {
          const int64_t batch = i / (m * n);
          const double expected = element(a, at(lead.a, batch) * m * k, ta, b, at(lead.b, batch) * n * k, tb, m, n, k, i / n % m, i % n);
          ASSERT_NEAR(double{c[static_cast<size_t>(i)]}, expected, 1e-5) << set.name << " " << text(sa, " ", sb) << " at " << i;
        }
      }
    }
  }
}

TEST(CpuMatmul, GivesZerosWhenTheInnerDimensionIsEmpty) {
  for (const CpuSet& set : cpu_sets()) {
    std::vector<float> a, b, c(6, kNaN);
    ASSERT_TRUE(run_kernel(set, Op::matmul, {operand(a, {2, 0}), operand(b, {0, 3})}, {operand(c, {2, 3})}, {}, 1));
    EXPECT_EQ(c, std::vector<float>(6, 0.0F)) << set.name;
  }
}

TEST(CpuMatmul, RefusesDoublesAndNamesTheWayOut) {
  for (const CpuSet& set : cpu_sets()) {
    std::vector<double> a(4), c(4);
    const Operand x{a.data(), DType::f64, {2, 2}}, y{c.data(), DType::f64, {2, 2}};
    try {
      run_kernel(set, Op::matmul, {x, x}, {y}, {}, 1);
      FAIL() << set.name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported);
      EXPECT_NE(error.message().find("matmul"), std::string::npos) << error.message();
    }
  }
}

TEST(CpuLinear, AddsTheBiasToEveryRow) {
  const int64_t m = 45, n = 70, k = 33;
  for (const CpuSet& set : cpu_sets()) {
    for (const bool transposed : {false, true}) {
      std::vector<float> x = random_floats(m * k, 1), w = random_floats(k * n, 2), bias = random_floats(n, 3),
                         y(static_cast<size_t>(m * n), kNaN);
      ASSERT_TRUE(run_kernel(set, Op::linear,
                             {operand(x, {5, 9, k}), operand(w, transposed ? Shape{n, k} : Shape{k, n}), operand(bias, {n})},
                             {operand(y, {5, 9, n})}, {{"transpose_weight", transposed}}, 2));
      for (int64_t i = 0; i < m * n; ++i) {
        const double expected = element(x, 0, false, w, 0, transposed, m, n, k, i / n, i % n) + double{bias[static_cast<size_t>(i % n)]};
        ASSERT_NEAR(double{y[static_cast<size_t>(i)]}, expected, 1e-5) << set.name << " at " << i;
      }
    }
  }
}

/// 16-bit elements: the operands are exact in fp32, so the result is the fp32 sum rounded once; half a unit of the last place plus the
/// sum's own error.
TEST(CpuMatmul, RoundsHalvesOnce) {
  const int64_t m = 35, n = 50;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto narrow = [&](float x) { return dtype == DType::bf16 ? bf16_of(x) : f16_of(x); };
    const auto widen = [&](uint16_t x) { return dtype == DType::bf16 ? f32_of_bf16(x) : f32_of_f16(x); };
    const double unit = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
    for (const int64_t k : {40, 2600}) {
      for (int way = 0; way < 4; ++way) {
        const bool ta = way % 2 != 0, tb = way / 2 != 0;
        std::vector<uint16_t> a, b, c(static_cast<size_t>(m * n), 0xFFFF);
        std::vector<float> wide_a, wide_b;
        for (const float x : random_floats(m * k, 1)) a.push_back(narrow(x)), wide_a.push_back(widen(a.back()));
        for (const float x : random_floats(k * n, 2)) b.push_back(narrow(x)), wide_b.push_back(widen(b.back()));
        const Operand oa{a.data(), dtype, ta ? Shape{k, m} : Shape{m, k}}, ob{b.data(), dtype, tb ? Shape{n, k} : Shape{k, n}};
        for (const CpuSet& set : cpu_sets()) {
          ASSERT_TRUE(run_kernel(set, Op::matmul, {oa, ob}, {{c.data(), dtype, {m, n}}}, {{"transpose_a", ta}, {"transpose_b", tb}}, 2));
          for (int64_t i = 0; i < m * n; ++i) {
            const double expected = element(wide_a, 0, ta, wide_b, 0, tb, m, n, k, i / n, i % n);
            const double bound = std::abs(expected) * unit * 1.001 + 1e-5 * std::sqrt(static_cast<double>(k));
            ASSERT_NEAR(double{widen(c[static_cast<size_t>(i)])}, expected, bound) << set.name << " k " << k << " at " << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace st

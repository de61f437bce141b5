// cpu products of f32 by f32 and of bf16 by bf16 against products in double: every instruction set, every class of shape, strides, alpha
// and beta, and the same bits for any number of threads. matmul and linear are in the conformance suite.
#include <array>
#include <cstring>

#include "backend/kernel_side.h"
#include "cpu_product.h"
#include "thrown_error.h"

namespace st {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16};

/// Types that C may have.
std::vector<DType> results_of(DType type) { return type == DType::bf16 ? std::vector{DType::f32, DType::bf16} : std::vector{DType::f32}; }

/// Runs a check on each set and type until one fails.
template <class Check>
void on_each(const Check& check) {
  for (const CpuSet& set : cpu_sets())
    for (const DType type : kTypes) {
      check(set, type);
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(CpuProduct, EqualsDoublePrecisionOnAllClassesOfShapes) {
  on_each([](const CpuSet& set, DType type) {
    const std::vector<int64_t> sizes =
        type == DType::f32 ? std::vector<int64_t>{1, 3, 37, 129, 257} : std::vector<int64_t>{1, 2, 3, 17, 31, 33, 65, 257};
    for (const int64_t m : sizes)
      for (const int64_t n : sizes)
        for (const int64_t k : sizes) {
          const int64_t way = m + n + k;
          Product x(type, m, n, k, way % 2 == 0, way % 3 == 0, way % 5);
          x.multiply(set);
          x.expect_product(set);
          if (testing::Test::HasFatalFailure()) return;
        }
  });
}

TEST(CpuProduct, TakesEveryTransposeAndRowsWithGaps) {
  on_each([](const CpuSet& set, DType type) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 83, 45}, {16, 83, 45}, {17, 83, 45}, {70, 83, 45}, {37, 203, 511}})
      for (const DType c_type : results_of(type))
        for (int way = 0; way < 4; ++way) {
          Product x(type, m, n, k, (way & 1) != 0, (way & 2) != 0, 5);
          x.p.c_type = c_type;
          x.multiply(set, 2);
          x.expect_product(set);
          for (size_t i = 0; i < x.c.size(); ++i) {
            if (static_cast<int64_t>(i) % x.p.c.row < n) continue;
            ASSERT_TRUE(std::isnan(x.c[i])) << set.name << " wrote into the gap at " << i;
          }
        }
  });
}

TEST(CpuProduct, TakesOperandsWhoseElementsAreNeverNeighbours) {
  on_each([](const CpuSet& set, DType type) {
    for (const int64_t k : {1, 44, 75}) {
      Product x(type, 35, 50, k);
      x.p.a = {3 * k + 1, 3}, x.p.a_batch = 35 * (3 * k + 1);
      x.p.b = {2 * 50, 2}, x.p.b_batch = k * 100;
      x.draw();
      x.multiply(set, 2);
      x.expect_product(set);
    }
  });
}

TEST(CpuProduct, AddsLongInnerDimensionsInKBlocks) {
  on_each([](const CpuSet& set, DType type) {
    for (const int64_t m : {5, 40}) {
      Product x(type, m, 50, 5000, m == 40);
      x.multiply(set, 2);
      x.expect_product(set);
    }
    for (const int64_t kc : {0, 1, 50, 1000})
      for (int way = 0; way < 4; ++way) {
        Product x(type, 40, 50, 2501, (way & 1) != 0, (way & 2) != 0);
        x.multiply(set, 2, {.kc = kc});
        x.expect_product(set);
      }
  });
}

TEST(CpuProduct, NeverReadsCWhenBetaIsZeroAndAddsItOtherwise) {
  on_each([](const CpuSet& set, DType type) {
    for (const auto& [n, k] : {std::array<int64_t, 2>{41, 0}, {41, 60}, {41, 2500}, {64, 61}, {64, 5000}})
      for (const float beta : {0.0F, 1.0F, -0.5F})
        for (const bool bias : {false, true})
          for (const DType c_type : results_of(type)) {
            Product x(type, 30, n, k);
            x.p.alpha = 0.75F, x.p.beta = beta, x.p.bias = bias, x.p.c_type = c_type;
            if (beta != 0) x.c = random_floats(30 * n, 9);  // else C stays full of NaN
            if (c_type == DType::bf16)
              for (float& value : x.c) value = f32_of_bf16(bf16_of(value));
            const std::vector<float> before = x.c;
            x.multiply(set, 2);
            x.expect_product(set, before);
          }
  });
}

TEST(CpuProduct, WritesColumnMajorAndScatteredC) {
  on_each([](const CpuSet& set, DType type) {
    for (const auto& [m, n] : {std::array<int64_t, 2>{23, 31}, {43, 71}})
      for (const MatrixStrides c : {MatrixStrides{1, m}, MatrixStrides{2 * n, 2}})
        for (const int64_t k : {19, 2100, 5000}) {
          Product x(type, m, n, k, false, true);
          x.p.c = c, x.p.c_batch = 2 * m * n;
          x.draw();
          x.multiply(set, 2);
          x.expect_product(set);
        }
  });
}

TEST(CpuProduct, OfABatchIsTheProductOfEachEntry) {
  on_each([](const CpuSet& set, DType type) {
    for (const int64_t m : {5, 70})
      for (const bool shared : {false, true}) {
        Product x(type, m, 90, 77, false, false, 1, 4);
        if (shared) x.p.b_batch = 0;
        x.multiply(set, 3);
        x.expect_product(set);
        Product packed = x;
        packed.multiply(set, 1, {}, true);
        for (size_t i = 0; i < x.c.size(); ++i) {
          if (static_cast<int64_t>(i) % x.p.c.row < x.p.n) {
            ASSERT_EQ(packed.c[i], x.c[i]) << set.name << ", packed, at " << i;
          }
        }
      }
  });
}

TEST(CpuProduct, OfAPackedMatrixIsRightInEveryWidth) {
  on_each([](const CpuSet& set, DType type) {
    for (int64_t n = 1; n <= 80; ++n)
      for (const int64_t m : {1, 5, 16, 40}) {
        Product x(type, m, n, 20);
        x.multiply(set, 1, {}, true);
        x.expect_product(set);
        if (testing::Test::HasFatalFailure()) return;
      }
  });
}

// Each row's sums are independent: a product of some rows gives the same bits for them (micro-batches of other sizes).
TEST(CpuProduct, HasTheSameBitsForARowAtAnyPosition) {
  on_each([](const CpuSet& set, DType type) {
    for (const int64_t k : {900, 901}) {
      Product all(type, 100, 130, k), few = all;
      few.p.m = 7;
      all.multiply(set);
      few.multiply(set);
      for (size_t i = 0; i < 7 * 130; ++i) ASSERT_EQ(all.c[i], few.c[i]) << set.name << " at " << i;
    }
  });
}

// --- f32

TEST(CpuProduct, AddsTheFinishedSumToC) {
  for (const CpuSet& set : cpu_sets()) {
    Product alone(DType::f32, 20, 33, 3000);
    Product added = alone;
    added.p.beta = 1;
    added.c = random_floats(20 * 33, 9);
    std::vector<float> expected = added.c;
    alone.multiply(set);
    added.multiply(set);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = alone.c[i] + expected[i];
    EXPECT_EQ(added.c, expected) << set.name;  // one rounding more, not another sum over k
  }
}

TEST(CpuProduct, HasTheSameBitsForAnyNumberOfThreads) {
  for (const CpuSet& set : cpu_sets())
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{300, 700, 1500}, {8, 1500, 300}, {37, 1013, 511}})
      for (const bool transpose_b : {false, true}) {
        Product one(DType::f32, m, n, k, false, transpose_b), two = one, three = one;
        one.multiply(set, 1);
        two.multiply(set, 2);
        three.multiply(set, 3);
        EXPECT_EQ(one.c, two.c) << set.name;
        EXPECT_EQ(one.c, three.c) << set.name;
      }
}

/// Blocks of M that end in a few rows, blocks of N that end in a partial panel, several K blocks: whenever the packed data changes.
TEST(CpuProduct, HasTheSameBitsForAnyBlocks) {
  for (const CpuSet& set : cpu_sets())
    for (const bool transpose_b : {false, true}) {
      const Product given(DType::f32, 327, 150, 70, true, transpose_b, 3);
      for (const int64_t kc : {16, 70}) {
        Product base = given;
        base.multiply(set, 1, {.kc = kc});
        base.expect_product(set);
        for (const int64_t block_m : {28, 84, 140, 322})
          for (const int64_t block_n : {64, 96, 150})
            for (const LoopOrder order : {LoopOrder::n_k_m, LoopOrder::n_m_k})
              for (const int threads : {1, 2}) {
                Product x = given;
                x.multiply(set, threads, {.mc = 28, .nc = 32, .kc = kc, .block_m = block_m, .block_n = block_n, .order = order});
                ASSERT_EQ(std::memcmp(x.c.data(), base.c.data(), x.c.size() * sizeof(float)), 0)
                    << set.name << ", k " << kc << ", block " << block_m << "x" << block_n << ", " << threads << " threads";
              }
      }
    }
}

/// Few rows read B in place, in widths that depend on their number; the smallest products pack nothing.
TEST(CpuProduct, HasTheSameBitsForAnyNumberOfRows) {
  for (const CpuSet& set : cpu_sets())
    for (const int64_t n : {31, 96, 130, 160, 224, 544}) {
      Product all(DType::f32, 48, n, 1100);
      all.multiply(set);
      for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 13, 15, 16, 17, 29, 40, 41})
        for (const int threads : {1, 2}) {
          Product few = all;
          few.p.m = m;
          few.c.assign(static_cast<size_t>(m * n), Product::kNaN);
          few.multiply(set, threads);
          for (size_t i = 0; i < few.c.size(); ++i)
            ASSERT_EQ(all.c[i], few.c[i]) << set.name << " " << m << "x" << n << " at " << i << ", " << threads << " threads";
        }
    }
}

// --- the op

TEST(CpuMatmul, RefusesDoublesAndNamesTheWayOut) {
  for (const CpuSet& set : cpu_sets()) {
    std::vector<double> a(4), c(4);
    const Operand x{address_of(a.data()), DType::f64, {2, 2}}, y{address_of(c.data()), DType::f64, {2, 2}};
    const Error error = error_of([&] { run_kernel(set, Op::matmul, {x, x}, {y}, {}, 1); });
    EXPECT_TRUE(is_error(error, Code::unsupported, {"matmul"})) << set.name;
  }
}

/// 16-bit operands are exact in fp32, so the result is the fp32 sum rounded once: half a unit in the last place plus the sum's own error.
TEST(CpuMatmul, RoundsHalvesOnce) {
  const int64_t m = 35, n = 50;
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const int64_t k : {40, 2600})
      for (int way = 0; way < 4; ++way) {
        const bool ta = way % 2 != 0, tb = way / 2 != 0;
        StoredNumbers a(random_floats(m * k, 1), dtype), b(random_floats(k * n, 2), dtype),
            c(std::vector<float>(m * n, Product::kNaN), dtype);
        const auto at_a = [&](int64_t i, int64_t l) {
          return double{float_of(dtype, a.halves[static_cast<size_t>(ta ? l * m + i : i * k + l)])};
        };
        const auto at_b = [&](int64_t l, int64_t j) {
          return double{float_of(dtype, b.halves[static_cast<size_t>(tb ? j * k + l : l * n + j)])};
        };
        std::vector<double> expected(static_cast<size_t>(m * n));
        for (int64_t i = 0; i < m * n; ++i)
          for (int64_t l = 0; l < k; ++l) expected[static_cast<size_t>(i)] += at_a(i / n, l) * at_b(l, i % n);
        const Operand oa{address_of(a.data()), dtype, ta ? Shape{k, m} : Shape{m, k}},
            ob{address_of(b.data()), dtype, tb ? Shape{n, k} : Shape{k, n}};
        for (const CpuSet& set : cpu_sets()) {
          ASSERT_TRUE(run_kernel(set, Op::matmul, {oa, ob}, {{address_of(c.data()), dtype, {m, n}}},
                                 {{"transpose_a", ta}, {"transpose_b", tb}}, 2));
          for (size_t i = 0; i < expected.size(); ++i) {
            const double bound =
                std::abs(expected[i]) * (dtype == DType::bf16 ? 0x1p-8 : 0x1p-11) * 1.001 + 1e-5 * std::sqrt(static_cast<double>(k));
            ASSERT_NEAR(double{float_of(dtype, c.halves[i])}, expected[i], bound) << set.name << " k " << k << " at " << i;
          }
        }
      }
}

}  // namespace
}  // namespace st

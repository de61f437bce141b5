// Products of bf16 by bf16 against products in double precision, on every instruction set of this machine, those that multiply pairs of
// bf16 among them: shapes, strides, pieces of K, batches, packed operands, and the same bits for any threads and tiles.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/float16.h"
#include "cpu_kernel.h"

namespace st {
namespace {

constexpr uint16_t kNaN = 0x7FC0, kInfinity = 0x7F80, kOne = 0x3F80;

/// Operands are bf16; C is kept as the floats that it holds, whatever its type.
struct Bf16Case {
  GemmProblem p;
  std::vector<uint16_t> a, b;
  std::vector<float> c, bias;

  /// Row-major operands, transposed in memory where asked, `gap` unused columns of NaN at the end of each row.
  Bf16Case(int64_t m, int64_t n, int64_t k, bool transpose_a = false, bool transpose_b = false, int64_t gap = 0, int64_t batch = 1) {
    p.m = m, p.n = n, p.k = k, p.batch = batch;
    p.a_type = p.b_type = DType::bf16;
    p.a = transpose_a ? MatrixStrides{1, m + gap} : MatrixStrides{k + gap, 1};
    p.b = transpose_b ? MatrixStrides{1, k + gap} : MatrixStrides{n + gap, 1};
    p.c = {n, 1};
    p.a_batch = (transpose_a ? k : m) * ((transpose_a ? m : k) + gap);
    p.b_batch = (transpose_b ? n : k) * ((transpose_b ? k : n) + gap);
    p.c_batch = m * n;
    draw();
  }
  /// Fills the places that the problem's strides name, all others stay NaN.
  void draw() {
    a.assign(static_cast<size_t>(p.a_batch * p.batch), kNaN);
    b.assign(static_cast<size_t>(p.b_batch * p.batch), kNaN);
    c.assign(static_cast<size_t>(p.c_batch * p.batch), std::numeric_limits<float>::quiet_NaN());
    bias = random_floats(p.n, 3);
    for (float& x : bias) x = f32_of_bf16(bf16_of(x));
    const std::vector<float> of_a = random_floats(p.m * p.k * p.batch, 1), of_b = random_floats(p.k * p.n * p.batch, 2);
    for (int64_t e = 0; e < p.batch; ++e) {
      for (int64_t i = 0; i < p.m * p.k; ++i) *at_a(e, i / p.k, i % p.k) = bf16_of(of_a[static_cast<size_t>(e * p.m * p.k + i)]);
      for (int64_t i = 0; i < p.k * p.n; ++i) *at_b(e, i / p.n, i % p.n) = bf16_of(of_b[static_cast<size_t>(e * p.k * p.n + i)]);
    }
  }

  uint16_t* at_a(int64_t e, int64_t i, int64_t k) { return a.data() + e * p.a_batch + i * p.a.row + k * p.a.column; }
  uint16_t* at_b(int64_t e, int64_t k, int64_t j) { return b.data() + e * p.b_batch + k * p.b.row + j * p.b.column; }
  float& at_c(int64_t e, int64_t i, int64_t j) { return c[static_cast<size_t>(e * p.c_batch + i * p.c.row + j * p.c.column)]; }

  void multiply(const CpuSet& set, int threads = 1, const TileSchedule& wanted = {}, bool packed = false) {
    Workers workers(threads);
    const TileSchedule schedule = set.gemm->schedule(p, wanted);
    GuardedScratch scratch(set.gemm->workspace(p, schedule, threads));
    GuardedScratch laid_out(packed ? set.gemm->packed_bytes(p, schedule) : 0);
    std::vector<uint16_t> halves, bias_halves;
    for (const float x : c) halves.push_back(bf16_of(x));
    for (const float x : bias) bias_halves.push_back(bf16_of(x));
    const bool wide = p.c_type == DType::f32;
    GemmOperands x{a.data(), b.data(), wide ? static_cast<void*>(c.data()) : halves.data()};
    if (p.bias) x.bias = wide ? static_cast<const void*>(bias.data()) : bias_halves.data();
    if (packed) {
      set.gemm->pack(p, schedule, b.data(), laid_out.bytes().data(), workers);
      x.b = nullptr, x.packed_b = laid_out.bytes().data();
    }
    set.gemm->run(p, schedule, x, scratch.bytes(), workers);
    ASSERT_TRUE(scratch.is_whole() && laid_out.is_whole()) << set.name << " wrote past its memory, " << text_of(schedule);
    for (size_t i = 0; !wide && i < c.size(); ++i) c[i] = f32_of_bf16(halves[i]);
  }

  /// Products of bf16 are exact in fp32, so the bound is that of a sum of k floats; a bf16 C rounds once more.
  void expect_product(const CpuSet& set, std::vector<float> before = {}) {
    before.resize(c.size());
    std::swap(before, c);
    for (int64_t i = 0; i < p.batch * p.m * p.n; ++i) {
      const int64_t e = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
      double sum = 0, size = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const double term = double{f32_of_bf16(*at_a(e, row, k))} * double{f32_of_bf16(*at_b(e, k, column))};
        sum += term, size += std::abs(term);
      }
      sum *= double{p.alpha}, size *= std::abs(double{p.alpha});
      if (p.beta != 0) sum += double{p.beta * at_c(e, row, column)}, size += std::abs(double{at_c(e, row, column)});
      if (p.bias) sum += double{bias[static_cast<size_t>(column)]}, size += std::abs(double{bias[static_cast<size_t>(column)]});
      std::swap(before, c);
      const double unit = p.c_type == DType::bf16 ? 0x1p-8 : 0;
      const double bound = 0x1p-24 * size * (4 + 4 * std::sqrt(static_cast<double>(p.k))) + unit * std::abs(sum) * 1.001;
      ASSERT_LE(std::abs(double{at_c(e, row, column)} - sum), bound)
          << set.name << " " << p.m << "x" << p.n << "x" << p.k << " entry " << e << " at " << row << ", " << column;
      std::swap(before, c);
    }
    std::swap(before, c);
  }
};

TEST(Bf16Product, EqualsDoublePrecisionOnAllClassesOfShapes) {
  constexpr int64_t kSizes[] = {1, 2, 3, 17, 31, 33, 65, 257};
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t m : kSizes) {
      for (const int64_t n : kSizes) {
        for (const int64_t k : kSizes) {
          const int64_t way = m + n + k;
          Bf16Case x(m, n, k, way % 2 == 0, way % 3 == 0, way % 5);
          x.multiply(set);
          x.expect_product(set);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Bf16Product, TakesEveryTransposeOfAnOddShapeIntoBothTypes) {
  for (const CpuSet& set : cpu_sets()) {
    for (int way = 0; way < 8; ++way) {
      Bf16Case x(37, 203, 511, (way & 1) != 0, (way & 2) != 0, 3);
      if ((way & 4) != 0) x.p.c_type = DType::bf16;
      x.multiply(set, 2);
      x.expect_product(set);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Bf16Product, TakesOperandsWhoseElementsAreNeverNeighbours) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t k : {1, 44, 75}) {
      Bf16Case x(35, 50, k);
      x.p.a = {3 * k + 1, 3}, x.p.a_batch = 35 * (3 * k + 1);
      x.p.b = {2 * 50, 2}, x.p.b_batch = k * 100;
      x.draw();
      x.multiply(set, 2);
      x.expect_product(set);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Bf16Product, AddsLongOddInnerDimensionsInPieces) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t kc : {0, 1, 50, 1000}) {
      for (const int way : {0, 1, 2, 3}) {
        Bf16Case x(40, 50, 2501, (way & 1) != 0, (way & 2) != 0);
        x.multiply(set, 2, {.kc = kc});
        x.expect_product(set);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Bf16Product, NeverReadsCWhenBetaIsZeroAndAddsItOtherwise) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t k : {0, 61, 5000}) {
      for (const float beta : {0.0F, 1.0F, -0.5F}) {
        for (const DType c_type : {DType::f32, DType::bf16}) {
          Bf16Case x(30, 64, k);
          x.p.alpha = 0.75F, x.p.beta = beta, x.p.bias = k != 61, x.p.c_type = c_type;
          if (beta != 0) x.c = random_floats(30 * 64, 9);  // else C stays full of NaN
          for (float& value : x.c) value = f32_of_bf16(bf16_of(value));
          const std::vector<float> before = x.c;
          x.multiply(set, 2);
          x.expect_product(set, before);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Bf16Product, WritesColumnMajorAndScatteredC) {
  for (const CpuSet& set : cpu_sets()) {
    for (const MatrixStrides c : {MatrixStrides{1, 43}, MatrixStrides{2 * 71, 2}}) {
      for (const int64_t k : {19, 5000}) {
        Bf16Case x(43, 71, k, false, true);
        x.p.c = c, x.p.c_batch = 2 * 43 * 71;
        x.draw();
        x.multiply(set, 2);
        x.expect_product(set);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Bf16Product, OfABatchIsTheProductOfEachEntry) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t m : {5, 70}) {
      for (const bool shared : {false, true}) {
        Bf16Case x(m, 90, 77, false, false, 1, 4);
        if (shared) x.p.b_batch = 0;
        x.multiply(set, 3);
        x.expect_product(set);
        const std::vector<float> plain = x.c;
        x.multiply(set, 1, {}, true);
        EXPECT_EQ(x.c, plain) << set.name << ", packed";
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Bf16Product, HasTheSameBitsForThreadsTilesOrdersAndPackedOperands) {
  for (const CpuSet& set : cpu_sets()) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{150, 260, 2300}, {8, 1500, 301}, {37, 1013, 511}, {1, 130, 4097}}) {
      for (const bool column_major : {false, true}) {
        Bf16Case x(m, n, k, false, true);
        if (column_major) x.p.c = {1, m};
        x.multiply(set);
        const std::vector<float> expected = x.c;
        TileSchedule wanted{.kc = set.gemm->schedule(x.p, {}).kc};
        for (int threads = 1; threads <= 4; ++threads) {
          const int64_t tile = int64_t{16} << threads;
          wanted.mc = wanted.nc = tile, wanted.block_m = wanted.block_n = 2 * tile, wanted.mr = threads == 3 ? 5 : 0;
          wanted.order = threads % 2 == 0 ? LoopOrder::n_k_m : LoopOrder::n_m_k;
          for (const bool packed : {false, true}) {
            std::fill(x.c.begin(), x.c.end(), -1.0F);
            x.multiply(set, threads, wanted, packed);
            ASSERT_EQ(x.c, expected) << set.name << ", " << threads << " threads, packed " << packed << ", " << m << " rows";
          }
        }
      }
    }
  }
}

TEST(Bf16Product, OfFewRowsHasTheSameBitsInPlaceAndPacked) {
  for (const CpuSet& set : cpu_sets()) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 200, 9001}, {8, 1500, 768}, {17, 513, 301}, {40, 75, 2300}}) {
      for (const bool transpose_b : {false, true}) {
        Bf16Case x(m, n, k, false, transpose_b, 3);
        x.p.beta = 0.5F;
        std::fill(x.c.begin(), x.c.end(), 2.0F);
        x.multiply(set, 2, {.b = Packing::packed});
        const std::vector<float> expected = x.c;
        std::fill(x.c.begin(), x.c.end(), 2.0F);
        x.multiply(set, 2);
        ASSERT_EQ(x.c, expected) << set.name << ", " << m << " rows, transposed " << transpose_b;
      }
    }
  }
}

TEST(Bf16Product, HasTheSameBitsWhereverARowStands) {
  for (const CpuSet& set : cpu_sets()) {
    Bf16Case all(100, 130, 901), few = all;
    few.p.m = 7;
    all.multiply(set);
    few.multiply(set);
    for (size_t i = 0; i < 7 * 130; ++i) ASSERT_EQ(all.c[i], few.c[i]) << set.name << " at " << i;
  }
}

TEST(Bf16Product, LetsInfinitiesAndNaNsOfARowReachThatRowAlone) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t k : {3, 32, 75}) {
      Bf16Case x(34, 40, k);
      for (int64_t i = 0; i < k; ++i) *x.at_b(0, i, 7) = kOne;
      *x.at_a(0, 3, k - 1) = kNaN;
      *x.at_a(0, 33, k - 1) = kInfinity;
      x.multiply(set);
      for (int64_t i = 0; i < 34; ++i) {
        for (int64_t j = 0; j < 40; ++j) {
          if (i == 3) {
            ASSERT_TRUE(std::isnan(x.at_c(0, i, j))) << set.name << " " << j;
          } else if (i == 33) {
            ASSERT_FALSE(std::isfinite(x.at_c(0, i, j))) << set.name << " " << j;
          } else {
            ASSERT_TRUE(std::isfinite(x.at_c(0, i, j))) << set.name << " " << i << ", " << j;
          }
        }
      }
      EXPECT_EQ(x.at_c(0, 33, 7), std::numeric_limits<float>::infinity()) << set.name;
    }
  }
}

/// Which states of this thread's are in use; bits 17 and 18 are the tiles'.
uint64_t states_in_use() {
  unsigned low = 0, high = 0;
#if defined(__x86_64__)
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
#endif
  return uint64_t{high} << 32 | low;
}

TEST(Bf16Product, LeavesNoTileStateInAThreadThatLentItself) {
  for (const CpuSet& set : cpu_sets()) {
    if (set.name != "amx_bf16") continue;
    Bf16Case x(70, 90, 600);
    x.multiply(set);
    EXPECT_EQ(states_in_use() & 0x60000, 0U);
  }
}

TEST(Bf16Product, OfOtherTypesHasTheBitsOfTheSetBelow) {
  const std::vector<CpuSet> sets = cpu_sets();
  for (const CpuSet& set : sets) {
    if (set.name.find("bf16") == std::string::npos) continue;
    const auto below = std::find_if(sets.begin(), sets.end(), [](const CpuSet& other) { return other.name == "avx512"; });
    for (const DType other : {DType::f32, DType::f16}) {
      Bf16Case x(40, 50, 60);
      x.p.b_type = other;  // two bytes of a float are what the elements are made of
      x.b.resize(2 * x.b.size(), kOne);
      Bf16Case y = x;
      x.multiply(set);
      y.multiply(*below);
      EXPECT_EQ(x.c, y.c) << set.name;
      EXPECT_EQ(text_of(set.gemm->schedule(x.p, {})), text_of(below->gemm->schedule(x.p, {})));
    }
  }
}

}  // namespace
}  // namespace st

// What is specific to bf16 products: sets that multiply bf16 pairs, their tiles and packed operands. For the rest see cpu_matmul_test.cpp.
#include <algorithm>
#include <array>

#include "cpu_product.h"

namespace st {
namespace {

TEST(Bf16Product, HasTheSameBitsForThreadsTilesOrdersAndPackedOperands) {
  for (const CpuSet& set : cpu_sets()) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{150, 260, 2300}, {8, 1500, 301}, {37, 1013, 511}, {1, 130, 4097}}) {
      for (const bool column_major : {false, true}) {
        Product x(DType::bf16, m, n, k, false, true);
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
        Product x(DType::bf16, m, n, k, false, transpose_b, 3);
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

TEST(Bf16Product, LetsInfinitiesAndNaNsOfARowReachThatRowAlone) {
  for (const CpuSet& set : cpu_sets()) {
    for (const int64_t k : {3, 32, 75}) {
      Product x(DType::bf16, 34, 40, k);
      for (int64_t i = 0; i < k; ++i) x.at_b(0, i, 7) = 1;
      x.at_a(0, 3, k - 1) = Product::kNaN;
      x.at_a(0, 33, k - 1) = std::numeric_limits<float>::infinity();
      x.multiply(set);
      for (int64_t i = 0; i < 34; ++i) {
        for (int64_t j = 0; j < 40; ++j) {
          if (i == 3) {
            ASSERT_TRUE(std::isnan(x.c[x.place_in_c(0, i, j)])) << set.name << " " << j;
          } else if (i == 33) {
            ASSERT_FALSE(std::isfinite(x.c[x.place_in_c(0, i, j)])) << set.name << " " << j;
          } else {
            ASSERT_TRUE(std::isfinite(x.c[x.place_in_c(0, i, j)])) << set.name << " " << i << ", " << j;
          }
        }
      }
      EXPECT_EQ(x.c[x.place_in_c(0, 33, 7)], std::numeric_limits<float>::infinity()) << set.name;
    }
  }
}

/// The state components that this thread uses; bits 17 and 18 are those of tiles.
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
    Product x(DType::bf16, 70, 90, 600);
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
      Product x(DType::bf16, 40, 50, 60);
      x.p.b_type = other;
      Product y = x;
      x.multiply(set);
      y.multiply(*below);
      EXPECT_EQ(x.c, y.c) << set.name;
      EXPECT_EQ(text_of(set.gemm->schedule(x.p, {})), text_of(below->gemm->schedule(x.p, {})));
    }
  }
}

}  // namespace
}  // namespace st

// Products as plans: packed operands, tiles and threads do not change results; only the block of K does.
#include "parts/gemm_plan.h"

#include <gtest/gtest.h>

#include <array>

#include "base/float16.h"
#include "cpu_kernel.h"
#include "plain_problem.h"

namespace st {
namespace {

const auto kMemory = std::make_shared<MemorySource>();

GemmPlan plan_of(const CpuSet& set, const GemmProblem& problem, const GemmWish& wish = {}, int threads = 1) {
  return GemmPlan(*set.gemm, choose_gemm(*set.gemm, problem, wish, threads), std::make_unique<Workers>(threads), kMemory);
}

struct PlanCase {
  GemmProblem p;
  std::vector<float> a, b, c;

  PlanCase(int64_t m, int64_t n, int64_t k, int64_t batch = 1)
      : p(plain_problem(m, n, k)),
        a(random_floats(m * k * batch, 1)),
        b(random_floats(k * n * batch, 2)),
        c(random_floats(m * n * batch, 3)) {
    p.batch = batch;
    if (batch > 1) p.a_batch = m * k, p.b_batch = k * n, p.c_batch = m * n;
  }

  std::vector<float> product(GemmPlan& plan, float beta = 0, const PackedMatrix* packed = nullptr) const {
    std::vector<float> out = c;
    GemmOperands x{a.data(), packed == nullptr ? b.data() : nullptr, out.data()};
    if (packed != nullptr) x.packed_b = packed->data();
    plan.run(x, 0.75F, beta);
    return out;
  }
};

constexpr std::array<std::array<int64_t, 3>, 9> kShapes = {
    {{1, 70, 130}, {8, 300, 400}, {16, 33, 1}, {37, 1013, 511}, {100, 130, 2500}, {300, 9, 64}, {5, 5, 0}, {0, 4, 4}, {129, 257, 65}}};

TEST(GemmPlan, APackedBHasTheBitsOfBInEveryClassOfShapes) {
  for (const CpuSet& set : cpu_sets())
    for (const auto& [m, n, k] : kShapes)
      for (int way = 0; way < 8; ++way) {
        const bool transpose_a = (way & 1) != 0, transpose_b = (way & 2) != 0, column_major = (way & 4) != 0;
        for (const int64_t batch : {1, 3}) {
          PlanCase x(m, n, k, batch);
          if (transpose_a) x.p.a = {1, m};
          if (transpose_b) x.p.b = {1, k};
          if (column_major) x.p.c = {1, m};
          GemmPlan plan = plan_of(set, x.p, {}, 2);
          const PackedMatrix packed(plan, x.b.data(), kMemory);
          ASSERT_TRUE(plan.fits(packed));
          for (const float beta : {0.0F, 0.5F})
            ASSERT_EQ(x.product(plan, beta), x.product(plan, beta, &packed))
                << set.name << " " << m << "x" << n << "x" << k << " batch " << batch << ", way " << way;
        }
      }
}

TEST(GemmPlan, OnePackedBServesEveryNumberOfRows) {
  for (const CpuSet& set : cpu_sets()) {
    const PlanCase many(100, 3300, 30);  // columns in two blocks
    GemmPlan packer = plan_of(set, many.p);
    const PackedMatrix packed(packer, many.b.data(), kMemory);
    for (const int64_t m : {1, 8, 20, 50}) {
      PlanCase few = many;
      few.p.m = m;
      GemmPlan plan = plan_of(set, few.p);
      ASSERT_TRUE(plan.fits(packed)) << set.name << " " << m;
      EXPECT_EQ(few.product(plan), few.product(plan, 0, &packed)) << set.name << " " << m;
    }
    GemmWish other;
    other.tiles.kc = 10;
    EXPECT_FALSE(plan_of(set, many.p, other).fits(packed));
  }
}

TEST(GemmPlan, ARepackedBIsTheNewOne) {
  for (const CpuSet& set : cpu_sets()) {
    PlanCase x(20, 40, 60);
    GemmPlan plan = plan_of(set, x.p);
    PackedMatrix packed(plan, x.b.data(), kMemory);
    x.b = random_floats(40 * 60, 9);
    EXPECT_NE(x.product(plan), x.product(plan, 0, &packed));
    packed.repack(plan, x.b.data());
    EXPECT_EQ(x.product(plan), x.product(plan, 0, &packed)) << set.name;
  }
}

TEST(GemmPlan, TilesAndThreadsChangeNoBitAndTheCutOfKDoes) {
  for (const CpuSet& set : cpu_sets()) {
    const PlanCase x(150, 260, 700);
    GemmPlan first = plan_of(set, x.p);
    GemmWish wish;
    wish.tiles.kc = first.choice().schedule.kc;
    for (const float beta : {0.0F, 1.0F}) {
      const std::vector<float> expected = x.product(first, beta);
      for (const int threads : {1, 2, 3})
        for (const int64_t tile : {1, 32, 64, 1000})
          for (const LoopOrder order : {LoopOrder::n_k_m, LoopOrder::n_m_k}) {
            wish.tiles.mc = wish.tiles.nc = tile;
            wish.tiles.block_m = wish.tiles.block_n = 2 * tile;
            wish.tiles.mr = tile == 64 ? 3 : 0;
            wish.tiles.order = order;
            GemmPlan plan = plan_of(set, x.p, wish, threads);
            ASSERT_EQ(x.product(plan, beta), expected) << set.name << ", " << threads << " threads, " << text_of(plan.choice().schedule);
          }
      GemmWish cut;
      cut.tiles.kc = 64;
      GemmPlan shorter = plan_of(set, x.p, cut);
      EXPECT_NE(x.product(shorter, beta), expected) << set.name;
    }
  }
}

TEST(GemmPlan, AFewRowsHaveTheSameBitsPackedAndInPlace) {
  for (const CpuSet& set : cpu_sets()) {
    const PlanCase x(8, 200, 900);
    GemmWish packed;
    packed.tiles.b = Packing::packed;
    GemmPlan in_place = plan_of(set, x.p), other = plan_of(set, x.p, packed);
    EXPECT_EQ(in_place.choice().schedule.b, Packing::in_place);
    EXPECT_EQ(other.choice().schedule.b, Packing::packed);
    EXPECT_EQ(x.product(in_place), x.product(other)) << set.name;
  }
}

TEST(GemmPlan, WithoutAlphaReadsNeitherANorBWithoutBetaNotC) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const CpuSet& set : cpu_sets())
    for (const int64_t batch : {1, 4}) {
      PlanCase x(90, 90, 90, batch);  // fewer products than the 3 threads, and more
      GemmPlan plan = plan_of(set, x.p, {}, 3);
      std::vector<float> nan(x.a.size(), kNaN), c = x.c;
      plan.run({nan.data(), nan.data(), c.data()}, 0, 0.5F);
      for (size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], 0.5F * x.c[i]) << set.name;
      plan.run({nan.data(), nan.data(), nan.data()}, 0, 0);
      EXPECT_EQ(nan, std::vector<float>(nan.size(), 0.0F)) << set.name;
      EXPECT_EQ(plan.last_rate(), 0) << "nothing was multiplied";
      x.product(plan);
      EXPECT_GT(plan.last_rate(), 0);
    }
}

TEST(GemmPlan, ABiasGoesAlongTheRowsOfAColumnMajorCToo) {
  for (const CpuSet& set : cpu_sets())
    for (const int64_t k : {30, 2500}) {
      PlanCase rows(40, 50, k), columns = rows;
      columns.p.c = {1, 40};
      const std::vector<float> bias = random_floats(50, 7);
      std::vector<float> by_rows(2000), by_columns(2000);
      plan_of(set, rows.p).run({rows.a.data(), rows.b.data(), by_rows.data(), bias.data()}, 2, 0);
      plan_of(set, columns.p).run({rows.a.data(), rows.b.data(), by_columns.data(), bias.data()}, 2, 0);
      for (size_t i = 0; i < 40; ++i)
        for (size_t j = 0; j < 50; ++j) ASSERT_EQ(by_rows[i * 50 + j], by_columns[j * 40 + i]) << set.name << " " << i << ", " << j;
    }
}

}  // namespace
}  // namespace st

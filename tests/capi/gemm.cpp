// Products through st_gemm: the problem's fields reach the kernels, packed and plain. Classes of shapes, long K and the bits for any tile
// and threads: tests/unit/backend/cpu_matmul_test.cpp, tests/unit/parts/gemm_plan_test.cpp.
#include "gemm_case.h"

namespace {

using namespace st::test;

class Gemm : public testing::Test {
 protected:
  Gemm() {
    auto options = filled(st_context_options_init);
    options.threads = 2;
    EXPECT_TRUE(works(st_context_create(&options, context_.out())));
  }

  static void expect_product(const GemmCase& x, float alpha, float beta, const Matrices& before) {
    const GemmShape& s = x.shape;
    for (int64_t e = 0; e < s.batch; ++e) {
      for (int64_t i = 0; i < s.m; ++i) {
        for (int64_t j = 0; j < s.n; ++j) {
          const auto [value, size] = x.exact(e, i, j, static_cast<double>(alpha), static_cast<double>(beta), before);
          ASSERT_NEAR(x.c.at(e, i, j), value, x.bound(value, size))
              << s.m << "x" << s.n << "x" << s.k << " of " << s.batch << " at " << e << ", " << i << ", " << j;
        }
      }
    }
  }

  /// Runs the product plain and packed; small ones on both devices.
  void check(const GemmShape& shape, float alpha = 1, float beta = 0, bool names_batch_strides = true) {
    GemmCase x(shape);
    if (!names_batch_strides) x.problem.a_batch = x.problem.b_batch = x.problem.c_batch = 0;
    const Matrices before = x.c;
    const HeldGemm gemm = x.plan(context_);
    ASSERT_TRUE(works(x.run(gemm, alpha, beta)));
    expect_product(x, alpha, beta, before);
    if (HasFatalFailure()) return;
    GemmCase again(shape);
    const HeldPacked packed = again.packed(gemm);
    ASSERT_TRUE(works(again.run(gemm, alpha, beta, packed)));
    EXPECT_EQ(again.c.bytes(), x.c.bytes()) << "packed";
  }

  HeldContext context_;
};

TEST_F(Gemm, TakesEveryTransposeGapsBetweenRowsAndBatches) {
  for (int way = 0; way < 16; ++way) {
    for (const int64_t gap : {0, 5}) {
      GemmShape shape{30, 41, 53};
      shape.transpose_a = (way & 1) != 0, shape.transpose_b = (way & 2) != 0, shape.column_major_c = (way & 4) != 0;
      shape.gap = gap;
      if ((way & 8) != 0) shape.batch = 3;
      check(shape);
      shape.shared_b = shape.batch > 1;
      if (shape.shared_b) check(shape);
    }
  }
}

TEST_F(Gemm, SharesEitherMatrixAndPutsABatchOneBehindTheOtherUnlessToldOtherwise) {
  for (int way = 0; way < 16; ++way) {
    GemmShape shape{30, 41, 53, 3};
    shape.transpose_a = shape.column_major_c = (way & 1) != 0, shape.transpose_b = (way & 2) != 0;
    shape.shared_a = (way & 4) != 0, shape.shared_b = (way & 8) != 0;
    check(shape, 1, 0, false);
    if (shape.shared_a) check(shape, 0.5F, 1);
  }
}

TEST_F(Gemm, WhatIsEmptyNeedsNoMemory) {
  for (const bool column_major : {false, true}) {
    GemmShape shape{30, 40, 0, 2};
    shape.column_major_c = column_major;
    GemmCase x(shape);
    const Matrices before = x.c;
    const HeldGemm gemm = x.plan(context_);
    st_view a = x.a.view(true), b = x.b.view(true), c = x.c.view(true);
    a.data = b.data = nullptr;
    ASSERT_TRUE(works(st_gemm_run(gemm, 1, &a, &b, 2, &c, nullptr)));
    expect_product(x, 1, 2, before);
    GemmCase none({0, 40, 20});
    st_view nothing = none.c.view();
    nothing.data = nullptr;
    a = none.a.view(), b = none.b.view();
    ASSERT_TRUE(works(st_gemm_run(none.plan(context_), 1, &a, &b, 0, &nothing, nullptr)));
  }
}

TEST_F(Gemm, TakesBf16AndF16InAnyMix) {
  constexpr st_dtype kTypes[] = {ST_F32, ST_BF16, ST_F16};
  for (const st_dtype a : kTypes) {
    for (const st_dtype b : kTypes) {
      for (const st_dtype c : kTypes) {
        GemmShape shape{19, 45, 70};
        shape.a_dtype = a, shape.b_dtype = b, shape.c_dtype = c;
        check(shape);
        check(shape, 0.5F, 1);
      }
    }
  }
}

TEST_F(Gemm, TheReferenceDeviceMultipliesToo) {
  auto options = filled(st_context_options_init);
  options.device = "reference";
  context_.reset();
  ASSERT_TRUE(works(st_context_create(&options, context_.out())));
  check({9, 11, 13}, 0.5F, 2);
  GemmShape shape{9, 11, 13, 2, true, true, true};
  shape.c_dtype = ST_BF16;
  check(shape);
  shape.shared_b = true;
  check(shape, 1, 1);
}

TEST_F(Gemm, KeepsTheOrderAndTheRowsInRegistersThatWereWishedFor) {
  const GemmShape shape{120, 70, 600};  // rows in registers are distributed evenly: 2, 3 and 4 divide 120
  for (const int32_t order : {ST_GEMM_ORDER_N_K_M, ST_GEMM_ORDER_N_M_K}) {
    for (const int64_t rows : {2, 3, 4}) {
      auto schedule = filled(st_gemm_schedule_init);
      schedule.order = order;
      schedule.micro_m = rows;
      GemmCase x(shape);
      const Matrices before = x.c;
      const HeldGemm gemm = x.plan(context_, &schedule);
      const auto info = filled(st_gemm_info_init, st_gemm_plan_info, gemm);
      EXPECT_EQ(info.order, order);
      EXPECT_EQ(info.micro_m, rows);
      EXPECT_EQ(info.adjusted, 0);
      EXPECT_EQ(info.source, ST_GEMM_SOURCE_REQUESTED);
      ASSERT_TRUE(works(x.run(gemm, 1, 0)));
      expect_product(x, 1, 0, before);
    }
  }
}

TEST_F(Gemm, TellsWhatWasChosenAndMeasured) {
  GemmCase x({200, 200, 200});
  auto schedule = filled(st_gemm_schedule_init);
  schedule.tile_m = schedule.tile_n = 33;
  schedule.tile_k = 50;
  const HeldGemm gemm = x.plan(context_, &schedule);
  auto info = filled(st_gemm_info_init, st_gemm_plan_info, gemm);
  EXPECT_EQ(info.adjusted, 1) << "no micro-kernel has 33 columns";
  EXPECT_GE(info.tile_n, 33);
  EXPECT_EQ(info.tile_n % info.micro_n, 0);
  EXPECT_EQ(info.tile_m % info.micro_m, 0);
  EXPECT_EQ(info.tile_k, 50);
  EXPECT_EQ(info.threads, 2);
  EXPECT_EQ(info.packing, ST_GEMM_PACKING_PACKED);
  EXPECT_STRNE(info.instruction_set, "");
  EXPECT_GT(info.scratch_bytes, 0);
  EXPECT_GE(info.packed_bytes, 200 * 200 * 4);
  EXPECT_EQ(info.source, ST_GEMM_SOURCE_REQUESTED);
  EXPECT_GT(info.predicted_flops_per_second, 1e6);
  EXPECT_EQ(info.flops_per_second, 0) << "nothing has run yet";
  ASSERT_TRUE(works(x.run(gemm, 1, 0)));
  ASSERT_TRUE(works(st_gemm_plan_info(gemm, &info)));
  EXPECT_GT(info.flops_per_second, 1e6);
}

TEST_F(Gemm, AChildKeepsItsParents) {
  GemmCase x({20, 30, 40});
  HeldGemm gemm = x.plan(context_);
  const HeldPacked packed = x.packed(gemm);
  context_.reset();
  ASSERT_TRUE(works(x.run(gemm, 1, 0, packed)));
  gemm.reset();
  const st_view b = x.b.view();
  EXPECT_TRUE(works(st_gemm_repack(packed, &b)));
}

}  // namespace

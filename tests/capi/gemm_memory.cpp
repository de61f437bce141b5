// Memory of st_gemm: allocated by the host at creation, none in a run, all freed at the end. Failing allocations: CreationMemory.
#include "gemm_case.h"
#include "ledger.h"

namespace {

using namespace st::test;

class GemmMemory : public testing::Test {
 protected:
  GemmMemory() {
    const auto options = ledger_.options();
    EXPECT_TRUE(works(st_context_create(&options, context_.out())));
  }

  Ledger ledger_;
  HeldContext context_;
};

TEST_F(GemmMemory, ARunAllocatesNothing) {
  GemmCase x({70, 80, 1500, 2});
  Matrices residual(ST_F32, 2, 70, 80, 80, 1, 5600, 4);
  const st_view added = residual.view(true);
  auto epilogue = filled(st_epilogue_init);
  epilogue.activation = ST_ACTIVATION_GELU_TANH;
  epilogue.residual = &added;
  const HeldGemm gemm = x.plan(context_);
  const HeldPacked packed = x.packed(gemm);
  const st_view b = x.b.view(true);
  const int64_t calls = ledger_.calls();
  ASSERT_TRUE(works(x.run(gemm, 1, 0.5F)));
  ASSERT_TRUE(works(x.run(gemm, 1, 0.5F, packed, &epilogue)));
  ASSERT_TRUE(works(x.run(gemm, 0, 1)));
  ASSERT_TRUE(works(st_gemm_repack(packed, &b)));
  EXPECT_EQ(ledger_.calls(), calls);
}

TEST_F(GemmMemory, WhatItTellsIsWhatItTakesAndGoesBack) {
  GemmCase x({200, 210, 220});
  const int64_t before = ledger_.bytes();
  {
    const HeldGemm gemm = x.plan(context_);
    const auto info = filled(st_gemm_info_init, st_gemm_plan_info, gemm);
    const int64_t of_plan = ledger_.bytes() - before;
    EXPECT_GE(of_plan, info.scratch_bytes);
    EXPECT_LE(of_plan, info.scratch_bytes + 8192) << "little memory in addition to scratch";
    const HeldPacked packed = x.packed(gemm);
    EXPECT_GE(ledger_.bytes() - before - of_plan, info.packed_bytes);
    EXPECT_LE(ledger_.bytes() - before - of_plan, info.packed_bytes + 1024);
  }
  EXPECT_EQ(ledger_.bytes(), before);
}

}  // namespace

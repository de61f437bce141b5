// The tile schedule: a pure function that divides rows and K evenly and predicts its scratch.
#include "gemm/schedule.h"
#include "gemm/gemm_kernels.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "plain_problem.h"

namespace st {
namespace {

constexpr InstructionSet kSets[] = {InstructionSet::portable, InstructionSet::avx2, InstructionSet::avx512, InstructionSet::avx512_bf16,
                                    InstructionSet::amx_bf16};

TEST(TileSchedule, FillsEverySizeWithMultiplesOfTheTile) {
  for (const InstructionSet set : kSets)
    for (const int64_t size : {0, 1, 37, 512, 50257}) {
      const TileSchedule s = choose_schedule(plain_problem(size, size, size), set);
      ASSERT_GT(s.mr, 0);
      ASSERT_GT(s.kc, 0);
      EXPECT_EQ(s.mc % s.mr, 0) << text_of(s);
      EXPECT_EQ(s.kc % s.kr, 0) << text_of(s);
      EXPECT_EQ(s.block_k % s.kc, 0) << text_of(s);
      EXPECT_EQ(s.block_m % s.mc, 0) << text_of(s);
      EXPECT_EQ(s.nc % s.nr, 0) << text_of(s);
      EXPECT_EQ(s.block_n % (s.packs_b() ? s.nc : s.nr), 0) << text_of(s);
    }
}

TEST(TileSchedule, SharesFewRowsOutEvenly) {
  EXPECT_EQ(choose_schedule(plain_problem(16, 768, 768), InstructionSet::avx512).mr, 8);
  EXPECT_EQ(choose_schedule(plain_problem(14, 768, 768), InstructionSet::avx512).mr, 14);
  EXPECT_EQ(choose_schedule(plain_problem(8, 768, 768), InstructionSet::avx2).mr, 4);
}

TEST(TileSchedule, CutsLongSumsIntoEvenBlocksThatDependOnKOnly) {
  const int64_t kc = choose_schedule(plain_problem(100, 100, 3000), InstructionSet::avx512).kc;
  EXPECT_EQ(kc, 1000);
  for (const int64_t m : {1, 16, 5000}) EXPECT_EQ(choose_schedule(plain_problem(m, 7, 3000), InstructionSet::avx512).kc, kc);
}

TEST(TileSchedule, ReadsBInPlaceForFewRowsOnly) {
  EXPECT_FALSE(choose_schedule(plain_problem(8, 3072, 768), InstructionSet::avx512).packs_b());
  EXPECT_TRUE(choose_schedule(plain_problem(512, 3072, 768), InstructionSet::avx512).packs_b());
  GemmProblem transposed = plain_problem(8, 3072, 768);
  transposed.b = {1, 768};
  EXPECT_TRUE(choose_schedule(transposed, InstructionSet::avx512).packs_b());
}

TEST(TileSchedule, ReadsABOfPairsInPlaceHoweverItLies) {
  GemmProblem p = plain_problem(8, 3072, 768);
  p.a_type = p.b_type = DType::bf16;
  for (const InstructionSet set : {InstructionSet::avx512_bf16, InstructionSet::amx_bf16}) {
    for (const MatrixStrides b : {MatrixStrides{3072, 1}, {1, 768}, {5 * 3072, 5}}) {
      p.b = b;
      EXPECT_FALSE(choose_schedule(p, set).packs_b());
    }
  }
}

TEST(TileSchedule, PacksBAlikeForFewRowsAndMany) {
  for (const int64_t k : {768, 9001}) {
    const GemmProblem few = plain_problem(8, 20000, k), many = plain_problem(512, 20000, k);
    for (const InstructionSet set : {InstructionSet::avx2, InstructionSet::avx512, InstructionSet::avx512_bf16, InstructionSet::amx_bf16})
      EXPECT_EQ(packing_of(few, choose_schedule(few, set)), packing_of(many, choose_schedule(many, set)));
  }
}

TEST(TileSchedule, KeepsTheSizesThatWereAskedFor) {
  TileSchedule wanted;
  wanted.kc = 256;
  wanted.mc = 50;
  const TileSchedule s = choose_schedule(plain_problem(1024, 1024, 1024), InstructionSet::avx512, {}, wanted);
  EXPECT_EQ(s.kc, 256);
  EXPECT_EQ(s.mc, 56);  // rounded up to whole tiles of 14
}

TEST(TileSchedule, KeepsPartialSumsApartWhereCCannotHoldThem) {
  GemmProblem p = plain_problem(100, 100, 5000);
  const auto apart = [&] { return sums_apart(p, choose_schedule(p, InstructionSet::avx512)); };
  EXPECT_FALSE(apart());
  p.beta = 1;
  EXPECT_TRUE(apart());
  p.beta = 0;
  p.c_type = DType::bf16;
  EXPECT_TRUE(apart());
  p.k = 100;
  EXPECT_FALSE(apart());
}

TEST(TileSchedule, BoundsScratchWhateverTheProblem) {
  const GemmProblem huge = plain_problem(100000, 50257, 100000);
  for (const InstructionSet set : {InstructionSet::avx512, InstructionSet::avx512_bf16, InstructionSet::amx_bf16}) {
    for (const int64_t k : {64, 1000, 4096, 100000}) {
      GemmProblem p = huge;
      p.k = k, p.beta = 1;
      const int64_t bytes = scratch_bytes(p, choose_schedule(p, set));
      EXPECT_GT(bytes, 0);
      EXPECT_LE(bytes, int64_t{40} << 20) << k;
    }
  }
}

TEST(GemmProblem, RefusesWhatNoKernelMultiplies) {
  GemmProblem p = plain_problem(2, 2, 2);
  EXPECT_NO_THROW(check_problem(p, "matmul"));
  p.k = -1;
  EXPECT_THROW(check_problem(p, "matmul"), Error);
  p.k = 2;
  p.b_type = DType::f64;
  EXPECT_THROW(check_problem(p, "matmul"), Error);
}

}  // namespace
}  // namespace st

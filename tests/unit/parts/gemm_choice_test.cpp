// Requested tiles are kept, rounded and reported, fitted to a scratch budget, or refused with the numbers.
#include "parts/gemm_choice.h"

#include "backend/backend.h"
#include "cpu_kernel.h"
#include "plain_problem.h"
#include "refusal.h"

namespace st {
namespace {

GemmProblem square(int64_t size) { return plain_problem(size, size, size); }

TEST(GemmChoice, KeepsAWishThatFitsTheMicroKernelAndTellsWhenItDoesNot) {
  for (const CpuSet& set : cpu_sets()) {
    const GemmChoice chosen = choose_gemm(*set.gemm, square(600), {}, 1);
    EXPECT_FALSE(chosen.adjusted) << set.name;
    GemmWish wish;
    wish.tiles.mc = chosen.schedule.mr * 3;
    wish.tiles.nc = chosen.schedule.nr * 2;
    wish.tiles.kc = 300;
    const GemmChoice kept = choose_gemm(*set.gemm, square(600), wish, 1);
    EXPECT_FALSE(kept.adjusted) << set.name << " " << text_of(kept.schedule);
    EXPECT_EQ(kept.tiles().mc, wish.tiles.mc);
    EXPECT_EQ(kept.tiles().kc, 300);
    wish.tiles.nc = chosen.schedule.nr * 2 - 1;
    const GemmChoice rounded = choose_gemm(*set.gemm, square(600), wish, 1);
    EXPECT_TRUE(rounded.adjusted) << set.name;
    EXPECT_EQ(rounded.tiles().nc, chosen.schedule.nr * 2);
  }
}

TEST(GemmChoice, OfAColumnMajorCSpeaksOfTheCallersMAndN) {
  for (const CpuSet& set : cpu_sets()) {
    GemmProblem p = square(600);
    p.c = {1, 600};
    GemmWish wish;
    wish.tiles.mc = 320;  // a multiple of each kernel set's register columns
    const GemmChoice choice = choose_gemm(*set.gemm, p, wish, 1);
    EXPECT_EQ(choice.tiles().mc, 320) << set.name;
    EXPECT_EQ(choice.schedule.nc, 320) << set.name;
    EXPECT_FALSE(choice.adjusted);
  }
}

TEST(GemmChoice, MakesWhatIsNotWishedForSmallerUnderABudgetButNeverThePieceOfK) {
  for (const CpuSet& set : cpu_sets()) {
    const GemmChoice free = choose_gemm(*set.gemm, square(2000), {}, 1);
    for (const int64_t share : {2, 4, 8}) {
      GemmWish wish;
      wish.max_scratch_bytes = free.scratch_bytes / share;
      const GemmChoice fitted = choose_gemm(*set.gemm, square(2000), wish, 1);
      EXPECT_LE(fitted.scratch_bytes, wish.max_scratch_bytes) << set.name << " " << text_of(fitted.schedule);
      EXPECT_EQ(fitted.schedule.kc, free.schedule.kc) << set.name;
      EXPECT_FALSE(fitted.adjusted) << "nothing was wished for";
    }
  }
}

TEST(GemmChoice, RefusesATileBeyondTheBudgetAndNamesTheLargestThatFits) {
  for (const CpuSet& set : cpu_sets()) {
    GemmWish wish;
    wish.tiles.block_m = wish.tiles.block_n = 2000;
    wish.max_scratch_bytes = 1 << 20;
    const std::string message = refusal(Code::out_of_memory, [&] { choose_gemm(*set.gemm, square(2000), wish, 1); });
    EXPECT_TRUE(says(message, {"1048576", "largest that fits is tile"}));
    // The tile that the error names fits.
    const size_t at = message.find("largest that fits is tile ") + 26;
    GemmWish named;
    named.max_scratch_bytes = wish.max_scratch_bytes;
    TileSchedule& t = named.tiles;
    ASSERT_EQ(std::sscanf(message.c_str() + at, "%ldx%ldx%ld in blocks of %ldx%ld", &t.mc, &t.nc, &t.kc, &t.block_m, &t.block_n), 5);
    const GemmChoice choice = choose_gemm(*set.gemm, square(2000), named, 1);
    EXPECT_FALSE(choice.adjusted) << message << " / " << text_of(choice.schedule);

    wish.max_scratch_bytes = 64;
    EXPECT_TRUE(refuses(Code::out_of_memory, {"even the smallest"}, [&] { choose_gemm(*set.gemm, square(2000), wish, 1); }));
  }
}

TEST(GemmChoice, RefusesAbsurdTilesSizesAndStrides) {
  const GemmKernels& kernels = *cpu_sets().front().gemm;
  const auto refused = [&](const GemmProblem& p, const TileSchedule& tiles, const char* word) {
    EXPECT_TRUE(refuses({word}, [&] { choose_gemm(kernels, p, {tiles}, 1); }));
  };
  TileSchedule tiles;
  tiles.mc = -1;
  refused(square(8), tiles, "tile_m must be 0 (choose) to");
  tiles = {}, tiles.kc = int64_t{1} << 40;
  refused(square(8), tiles, "got 1099511627776");
  GemmProblem p = square(8);
  p.m = -1;
  refused(p, {}, "m -1");
  p = square(8), p.a.row = 7;
  refused(p, {}, "elements of A");
  p = square(8), p.b.row = INT64_MAX / 2;
  refused(p, {}, "further than any memory");
  p = square(8), p.c.column = -1;
  refused(p, {}, "must not be negative");
  p = square(8), p.batch = 2, p.a_batch = p.b_batch = 64, p.c_batch = 63;
  refused(p, {}, "overlap");
  p = square(8), p.m = p.batch = INT64_C(1) << 31, p.k = 0, p.a = {0, 0}, p.n = INT64_C(1) << 31, p.c = {1, 0};
  EXPECT_THROW(choose_gemm(kernels, p, {}, 1), Error);
  tiles = {}, tiles.b = Packing::in_place;
  EXPECT_TRUE(refuses(Code::unsupported, {"at most 128 rows"}, [&] { choose_gemm(kernels, square(129), {tiles}, 1); }));
  p = square(8), p.b_type = DType::i32;
  refusal(Code::unsupported, [&] { choose_gemm(kernels, p, {}, 1); });
}

TEST(GemmChoice, OfTheReferenceNeedsNoScratch) {
  const auto backend = make_reference_backend();
  GemmWish wish;
  wish.max_scratch_bytes = 1;
  const GemmChoice choice = choose_gemm(backend->gemm(), square(100), wish, 4);
  EXPECT_EQ(choice.scratch_bytes, 0);
  EXPECT_EQ(choice.tiles().kc, 100);
}

}  // namespace
}  // namespace st

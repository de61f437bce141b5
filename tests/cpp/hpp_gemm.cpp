// Matrix products through scaletrain.hpp.
#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

TEST_F(Hpp, AProductIsPlannedRunPackedAndFused) {
  const Context context;
  GemmProblem problem;
  problem.m = 2;
  problem.n = 2;
  problem.k = 3;
  problem.b.column = 3;  // column-major
  const Gemm gemm(context, problem);
  std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 1, 0, 1, 0}, c(4), bias = {-10, 10}, before(4), sums(2);
  const View of_b = view(b, {3, 2}).strided({1, 3});
  gemm.run(1, view(a, {2, 3}), of_b, 0, view(c, {2, 2}));
  EXPECT_EQ(c, (std::vector<float>{4, 2, 10, 5}));
  EXPECT_GT(gemm.info().flops_per_second, 0);
  EXPECT_EQ(gemm.info().tile_k, 3);
  EXPECT_EQ(gemm.info().source, GemmSource::table);
  EXPECT_EQ(gemm.info().library, "own");
  EXPECT_GT(gemm.info().predicted_flops_per_second, 0);

  const PackedMatrix packed = gemm.pack(of_b);
  gemm.run(2, view(a, {2, 3}), packed, 1, view(c, {2, 2}));
  EXPECT_EQ(c, (std::vector<float>{12, 6, 30, 15}));
  b[5] = 1;
  packed.repack(of_b);
  Epilogue epilogue;
  epilogue.bias = view(bias);
  epilogue.activation = Activation::relu;
  epilogue.pre_activation = view(before, {2, 2});
  epilogue.column_sums = view(sums);
  gemm.run(1, view(a, {2, 3}), packed, 0, view(c, {2, 2}), epilogue);
  EXPECT_EQ(before, (std::vector<float>{-6, 15, 0, 21}));
  EXPECT_EQ(c, (std::vector<float>{0, 15, 0, 21}));
  EXPECT_EQ(sums, (std::vector<float>{0, 36}));
}

TEST_F(Hpp, AProductSaysWhatIsWrong) {
  const Context context;
  GemmProblem problem;
  problem.m = problem.n = problem.k = 2;
  GemmSchedule wish;
  wish.tile_m = -1;
  EXPECT_EQ(thrown_status([&] { Gemm(context, problem, wish); }), Status::invalid_argument);
  problem.c.shared = true;
  EXPECT_EQ(thrown_status([&] { Gemm(context, problem); }), Status::invalid_argument);
  problem.c.shared = false;
  const Gemm gemm(context, problem);
  std::vector<float> a(4), c(4);
  const std::vector<float> constant(4);
  EXPECT_EQ(thrown_status([&] { gemm.run(1, view(a, {2, 2}), view(a, {2, 2}), 0, view(constant, {2, 2})); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { gemm.run(1, view(a, {2, 2}), view(a, {2, 2}), 0, view(a, {2, 2})); }), Status::invalid_argument);
}

}  // namespace

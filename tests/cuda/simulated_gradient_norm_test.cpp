// The CUDA plug-in's gradient norm on the simulated grid: the cpu's bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "simulated_operands.h"

namespace st::cuda {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class GradientNormKernels : public FilledKernelTest {
 protected:
  GradientNormKernels() : FilledKernelTest(Order::late) {}
};

/// With special numbers most sums are not finite.
Filled gradient(DType dtype, int64_t elements, uint64_t seed, bool special) {
  return special ? random_filled(dtype, {elements}, seed) : moderate_filled(dtype, {elements}, seed);
}

TEST_F(GradientNormKernels, AddSquaresInTheOrderOfTheCpu) {
  for (const DType dtype : kStoredFloats)
    for (const bool special : {false, true}) {
      std::vector<Filled> all;
      for (const int64_t elements : {1, 3, 4, 15, 16, 17, 0, 1023, 1024, 1025, 5000, 70001}) {
        all.push_back(gradient(dtype, elements, static_cast<uint64_t>(elements), special));
        expect_bits_of_the_cpu(Op::gradient_norm, {all.back()}, {});
      }
      expect_bits_of_the_cpu(Op::gradient_squares, all, {});
      expect_bits_of_the_cpu(Op::gradient_norm, all, {});
      all.push_back(gradient(DType::f32, 333, 1, false));
      expect_bits_of_the_cpu(Op::gradient_norm, all, {});
    }
}

// More tensors than a launch takes.
TEST_F(GradientNormKernels, AddTheSumsOfManyTensorsInOrder) {
  std::vector<Filled> all;
  for (uint64_t i = 0; i < 300; ++i) all.push_back(gradient(DType::bf16, static_cast<int64_t>(i % 7), i, false));
  expect_bits_of_the_cpu(Op::gradient_norm, all, {});
}

TEST_F(GradientNormKernels, FindTheOneElementThatIsNotFinite) {
  for (const DType dtype : kStoredFloats)
    for (const int64_t at : {0, 1023, 1024, 2999}) {
      Filled x = gradient(dtype, 3000, 5, false);
      const auto [digits, exponents] = format_of(dtype);
      std::vector<uint8_t> bad;
      append(bad, dtype, ((uint64_t{1} << exponents) - 1) << digits);
      std::ranges::copy(bad, x.bytes.begin() + at * bytes_of(dtype));
      OperandsInMemory operands(Op::gradient_norm, {gradient(dtype, 10, 1, false), x}, {});
      run_on_device(Op::gradient_norm, operands.call());
      EXPECT_EQ(operands.taken(1), std::vector<uint8_t>{0}) << text(dtype, " at ", at);
    }
}

// Sums of squares beyond fp64's range are not finite, but the elements of f64 gradients are.
TEST_F(GradientNormKernels, OfLargeFp64GradientsAreFinite) {
  OperandsInMemory operands(Op::gradient_norm, {filled_with(DType::f64, {3}, std::vector<double>{1e200, -1e300, 1})}, {});
  run_on_device(Op::gradient_norm, operands.call());
  EXPECT_EQ(std::bit_cast<double>(*reinterpret_cast<const uint64_t*>(operands.taken(0).data())), kInfinity);
  EXPECT_EQ(operands.taken(1), std::vector<uint8_t>{1});
}

std::vector<double> random_squares(int64_t count) {
  std::mt19937_64 random(3);
  std::vector<double> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(std::ldexp(static_cast<double>(random() >> 11), -60 + static_cast<int>(random() % 40)));
  return all;
}

// Tensors of several subtrees of 2048 blocks, and of none.
TEST_F(GradientNormKernels, AddTreesOfAnySizeLikeTheCpu) {
  for (const Ints& tensors :
       {Ints{}, Ints{0, 1}, Ints{0, 2048}, Ints{0, 2049}, Ints{0, 9000}, Ints{0, 6145, 6145, 0, 6145, 7, 6152, 2848}}) {
    const Filled squares = filled_with(DType::f64, {9000}, random_squares(9000));
    expect_bits_of_the_cpu(Op::norm_of_squares, {squares}, {{"tensors", tensors}});
    expect_bits_of_the_cpu(Op::tensor_squares, {squares}, {{"tensors", tensors}});
  }
  Filled bad = filled_with(DType::f64, {2}, std::vector<double>{1, kInfinity});
  expect_bits_of_the_cpu(Op::norm_of_squares, {bad}, {{"tensors", Ints{0, 1, 1, 1}}});
  expect_bits_of_the_cpu(Op::norm_of_squares, {bad}, {{"tensors", Ints{0, 1}}});
}

TEST_F(GradientNormKernels, MakeTheFactorOfAStepLikeTheCpu) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double norm : {0.0, 1e-320, 1e-30, 0.3, 7.0, 1e30, 1e300, kInfinity, nan})
    for (const double count : {0.0, 1e-310, 1.0, 12345.0, 1e20})
      for (const double seed : {1.0, 0x1p-13, 0x1p24, 1e300})
        for (const double most : {0.0, 1.0, 1e-300, 1e300})
          for (const uint8_t finite : {uint8_t{0}, uint8_t{1}})
            expect_bits_of_the_cpu(Op::step_factor,
                                   {filled_with(DType::f64, {}, std::vector{norm}), filled_with(DType::boolean, {}, std::vector{finite}),
                                    filled_with(DType::f64, {}, std::vector{count})},
                                   {{"seed", seed}, {"max_norm", most}});
}

}  // namespace
}  // namespace st::cuda

// scaletrain.hpp: gradient accumulation over the program's own arrays.
#include <gtest/gtest.h>

#include <cstring>
#include <scaletrain.hpp>
#include <vector>

namespace {

using namespace scaletrain;

TEST(HppAccumulator, MakesTheTokenMeanOfAStep) {
  const Context context;
  std::vector<float> gradient(2);
  const Accumulator accumulator(context, 3, {View(DType::f32, gradient.data(), {2}, 8)});
  gradient = {3, -6};
  accumulator.add(3);
  EXPECT_FALSE(accumulator.should_step());
  accumulator.add(0);
  gradient = {1, 2};
  accumulator.add(1);
  EXPECT_TRUE(accumulator.should_step());
  EXPECT_EQ(accumulator.weight(), 4);
  EXPECT_EQ(gradient, (std::vector<float>{1, -1}));
  accumulator.set_steps(2);
  accumulator.add(1);
  accumulator.reset();
  EXPECT_EQ(accumulator.weight(), 0);
}

TEST(HppAccumulator, GoesOnFromTheStateOfAnother) {
  const Context context;
  std::vector<float> gradient = {3, -6};
  const std::vector<View> gradients = {View(DType::f32, gradient.data(), {2}, 8)};
  const Accumulator first(context, 2, gradients), second(context, 2, gradients);
  first.add(3);
  const Views from = first.state(), to = second.state();
  ASSERT_EQ(from.size(), 4);
  for (int64_t i = 0; i < from.size(); ++i) std::memcpy(to[i].view.data(), from[i].view.data(), static_cast<size_t>(from[i].view.bytes()));
  gradient = {1, 2};
  second.add(1);
  EXPECT_TRUE(second.should_step());
  EXPECT_EQ(gradient, (std::vector<float>{1, -1}));
}

TEST(HppAccumulator, ThrowsBeyondTheBoundaryAndForBadWeights) {
  const Context context;
  std::vector<float> gradient(2);
  const Accumulator accumulator(context, 1, {View(DType::f32, gradient.data(), {2}, 8)});
  accumulator.add(1);
  try {
    accumulator.add(1);
    FAIL() << "the step was whole";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::wrong_state);
  }
  EXPECT_TRUE(accumulator.should_step());
  EXPECT_THROW(accumulator.add(-1), Error);
  const std::vector<float> constant = {1};
  EXPECT_THROW(Accumulator(context, 1, {View(DType::f32, constant.data(), {1}, 4)}), Error) << "it is to be written";
}

}  // namespace

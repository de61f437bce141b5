// scaletrain.hpp: loss scaling over the program's own arrays.
#include <gtest/gtest.h>

#include <limits>
#include <scaletrain.hpp>
#include <vector>

namespace {

using namespace scaletrain;

TEST(HppLossScaler, ScalesUnscalesAndSkips) {
  const Context context;
  LossScalerOptions options;
  options.initial_scale = 8;
  options.growth_interval = 1;
  const LossScaler scaler(context, options);
  std::vector<float> gradient = {8, -16};
  const View view(DType::f32, gradient.data(), {2}, 8);
  EXPECT_EQ(scaler.scale(), 8);
  EXPECT_TRUE(scaler.unscale({view}));
  EXPECT_EQ(gradient, (std::vector<float>{1, -2}));
  EXPECT_TRUE(scaler.step());
  EXPECT_FALSE(scaler.update());
  EXPECT_EQ(scaler.scale(), 16);
  gradient[1] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(scaler.unscale({view}));
  EXPECT_FALSE(scaler.step());
  EXPECT_TRUE(scaler.update());
  EXPECT_EQ(scaler.state(), R"({"scale":8.0,"good_steps":0})");
}

TEST(HppLossScaler, ThrowsOutOfTurnAndForBadOptions) {
  const Context context;
  const LossScaler scaler(context);
  try {
    scaler.update();
    FAIL() << "update came first";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::wrong_state);
  }
  scaler.restore(R"({"scale":4.0,"good_steps":0})");
  EXPECT_EQ(scaler.scale(), 4);
  const std::vector<float> constant = {1};
  EXPECT_THROW(scaler.unscale({View(DType::f32, constant.data(), {1}, 4)}), Error) << "it is to be written";
  LossScalerOptions options;
  options.backoff_factor = 2;
  EXPECT_THROW(LossScaler(context, options), Error);
}

}  // namespace

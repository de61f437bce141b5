// scaletrain.hpp: clipping and optimizers over the program's own arrays.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <scaletrain.hpp>
#include <vector>

namespace {

using namespace scaletrain;

TEST(HppOptimizer, ClipsByTheNorm) {
  const Context context;
  std::vector<float> gradient = {3, 4};
  EXPECT_EQ(clip_norm(context, {view(gradient.data(), {2})}, 0), 5);
  EXPECT_EQ(gradient, (std::vector<float>{3, 4}));
  EXPECT_EQ(clip_norm(context, {view(gradient.data(), {2})}, 1), 5);
  EXPECT_NEAR(gradient[0], 0.6F, 1e-6);
  const std::vector<float> constant = {3, 4};
  EXPECT_EQ(clip_norm(context, {view(constant.data(), {2})}, 0), 5);
  EXPECT_THROW(clip_norm(context, {view(constant.data(), {2})}, 1), Error) << "it is to be written";
  EXPECT_THROW(clip_norm(context, {view(gradient.data(), {2})}, -1), Error);
}

TEST(HppOptimizer, StepsSkipsAndGoesOnFromItsState) {
  const Context context;
  std::vector<float> weight = {1, 2}, gradient = {0.5F, -0.5F};
  const char* json = R"({"optimizer": "sgd", "momentum": 0.5, "lr": 0.5})";
  const Optimizer optimizer(context, json, {{"w", view(weight.data(), {2})}});
  const OptimizerReport report = optimizer.step({view(gradient.data(), {2})});
  EXPECT_FALSE(report.skipped);
  EXPECT_EQ(report.step, 1);
  EXPECT_EQ(report.lr, 0.5);
  EXPECT_EQ(report.norm, std::sqrt(0.5));
  EXPECT_EQ(weight, (std::vector<float>{0.75F, 2.25F}));
  optimizer.set("lr", "1");
  gradient[0] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(optimizer.step({view(gradient.data(), {2})}).skipped);
  gradient[0] = 0;

  std::vector<float> copy = weight;
  const Optimizer other(context, json, {{"w", view(copy.data(), {2})}});
  other.set("lr", "1");
  const Views from = optimizer.state(), to = other.state();
  ASSERT_EQ(to.size(), 2);
  for (const NamedView& each : from) std::memcpy(to.at(each.name).data(), each.view.data(), static_cast<size_t>(each.view.bytes()));
  EXPECT_EQ(other.step({view(gradient.data(), {2})}).step, 2);
  optimizer.step({view(gradient.data(), {2})});
  EXPECT_EQ(copy, weight);
  EXPECT_EQ(weight[0], 0.5F) << "0.75 less half the momentum of 0.5";
}

TEST(HppOptimizer, StepsOnScaledGradients) {
  const Context context;
  const LossScaler scaler(context);
  std::vector<float> weight = {1, 2}, gradient = {0.5F, -0.5F};
  const Optimizer optimizer(context, R"({"optimizer": "sgd", "lr": 0.5})", {{"w", view(weight.data(), {2})}});
  const auto scaled_step = [&](float infinity) {
    const auto scale = static_cast<float>(scaler.scale());
    std::vector<float> scaled = {gradient[0] * scale + infinity, gradient[1] * scale};
    const OptimizerReport report = optimizer.step(scaler, {view(scaled.data(), {2})});
    EXPECT_EQ(scaler.update(), report.skipped);
    return report;
  };
  EXPECT_EQ(scaled_step(0).norm, std::sqrt(0.5));
  EXPECT_EQ(weight, (std::vector<float>{0.75F, 2.25F}));
  EXPECT_TRUE(scaled_step(std::numeric_limits<float>::infinity()).skipped);
  EXPECT_EQ(scaler.scale(), 32768);
  EXPECT_EQ(scaled_step(0).step, 2);
  EXPECT_EQ(weight, (std::vector<float>{0.5F, 2.5F}));
}

TEST(HppOptimizer, KeepsCopiesIn16Bits) {
  const Context context;
  std::vector<float> weight = {1, 2}, bias = {3}, gradient = {0.5F, -0.5F}, slope = {1};
  std::vector<uint16_t> half(2, 7);
  const Optimizer optimizer(context, R"({"optimizer": "sgd", "lr": 0.5})", {{"w", view(weight.data(), {2})}, {"b", view(bias)}});
  optimizer.keep_copies({View(DType::bf16, half.data(), {2}, 4), View()});
  EXPECT_EQ(half, (std::vector<uint16_t>{0x3F80, 0x4000}));
  optimizer.step({view(gradient), view(slope)});
  EXPECT_EQ(half, (std::vector<uint16_t>{0x3F40, 0x4010})) << "0.75 and 2.25";
  optimizer.keep_copies({});
  optimizer.step({view(gradient), view(slope)});
  EXPECT_EQ(half, (std::vector<uint16_t>{0x3F40, 0x4010}));
  const std::vector<uint16_t> constant(2);
  EXPECT_THROW(optimizer.keep_copies({View(DType::bf16, constant.data(), {2}, 4), View()}), Error) << "it is to be written";
}

TEST(HppOptimizer, RefusesWhatItCannotWrite) {
  const Context context;
  const std::vector<float> constant = {1};
  EXPECT_THROW(Optimizer(context, "{}", {{"w", view(constant.data(), {1})}}), Error);
  EXPECT_THROW(Optimizer(context, "{}", Views()), Error);
}

}  // namespace

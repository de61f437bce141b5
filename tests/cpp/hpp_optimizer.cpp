// scaletrain.hpp: clipping, accumulation, loss scaling and optimizers over the program's own arrays.
#include <cstring>
#include <limits>

#include "sine_objects.h"

namespace {

using namespace scaletrain;
using test::thrown_status;
using HppOptimizer = test::Hpp;

void copy(const Views& from, const Views& to) {
  ASSERT_EQ(from.size(), to.size());
  for (const NamedView& each : from) std::memcpy(to.at(each.name).data(), each.view.data(), static_cast<size_t>(each.view.bytes()));
}

TEST_F(HppOptimizer, ViewsOfConstantsAreNotWrittenTo) {
  const Context context;
  const std::vector<float> constant = {3, 4};
  const std::vector<uint16_t> half(2);
  std::vector<float> weight(2);
  const LossScaler scaler(context);
  const Optimizer optimizer(context, "{}", {{"w", view(weight)}});
  EXPECT_EQ(clip_norm(context, {view(constant)}, 0), 5) << "it is only read";
  EXPECT_EQ(thrown_status([&] { clip_norm(context, {view(constant)}, 1); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { Accumulator(context, 1, {view(constant)}); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { scaler.unscale({view(constant)}); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { Optimizer(context, "{}", {{"w", view(constant)}}); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { optimizer.keep_copies({View(DType::bf16, half.data(), {2}, 4)}); }), Status::invalid_argument);
}

TEST_F(HppOptimizer, AreRefusedByTheLibrarysOwnWord) {
  const Context context;
  std::vector<float> gradient(1);
  const std::vector<View> gradients = {view(gradient)};
  EXPECT_EQ(thrown_status([&] { clip_norm(context, gradients, -1); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { Optimizer(context, "{}", Views()); }), Status::invalid_argument);
  LossScalerOptions options;
  options.backoff_factor = 2;
  EXPECT_EQ(thrown_status([&] { LossScaler(context, options); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { LossScaler(context).update(); }), Status::wrong_state) << "the first";
  const Accumulator accumulator(context, 1, gradients);
  EXPECT_EQ(thrown_status([&] { accumulator.add(-1); }), Status::invalid_argument);
  accumulator.add(1);
  EXPECT_EQ(thrown_status([&] { accumulator.add(1); }), Status::wrong_state) << "the step was whole";
}

TEST_F(HppOptimizer, ClipsByTheNorm) {
  const Context context;
  std::vector<float> gradient = {3, 4};
  EXPECT_EQ(clip_norm(context, {view(gradient)}, 1), 5);
  EXPECT_NEAR(gradient[0], 0.6F, 1e-6);
}

TEST_F(HppOptimizer, AnAccumulatorMakesTheTokenMeanAndGoesOnFromTheStateOfAnother) {
  const Context context;
  std::vector<float> gradient = {3, -6};
  const Accumulator first(context, 3, {view(gradient)}), second(context, 2, {view(gradient)});
  first.set_steps(2);
  first.add(3);
  EXPECT_FALSE(first.should_step());
  copy(first.state(), second.state());
  first.reset();
  EXPECT_EQ(first.weight(), 0);
  gradient = {1, 2};
  second.add(1);
  EXPECT_TRUE(second.should_step());
  EXPECT_EQ(second.weight(), 4);
  EXPECT_EQ(gradient, (std::vector<float>{1, -1}));
}

TEST_F(HppOptimizer, ALossScalerUnscalesSkipsAndIsRestored) {
  const Context context;
  LossScalerOptions options;
  options.initial_scale = 8;
  const LossScaler scaler(context, options);
  std::vector<float> gradient = {8, -16};
  EXPECT_EQ(scaler.scale(), 8);
  EXPECT_TRUE(scaler.unscale({view(gradient)}));
  EXPECT_EQ(gradient, (std::vector<float>{1, -2}));
  EXPECT_TRUE(scaler.step());
  EXPECT_FALSE(scaler.update());
  EXPECT_EQ(scaler.scale(), 8);
  gradient[1] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(scaler.unscale({view(gradient)}));
  EXPECT_FALSE(scaler.step());
  EXPECT_TRUE(scaler.update());
  EXPECT_EQ(scaler.state(), R"({"scale":4.0,"good_steps":0})");
  const LossScaler other(context);
  other.restore(scaler.state());
  EXPECT_EQ(other.scale(), 4);
}

TEST_F(HppOptimizer, ReportsItsStepsAndGoesOnFromTheStateOfAnother) {
  const Context context;
  std::vector<float> weight = {1, 2}, gradient = {0.5F, -0.5F}, same_weight = {0.75F, 2.25F};
  const char* json = R"({"optimizer": "sgd", "momentum": 0.5, "lr": 0.5})";
  const Optimizer optimizer(context, json, {{"w", view(weight)}}), other(context, json, {{"w", view(same_weight)}});
  const OptimizerReport report = optimizer.step({view(gradient)});
  EXPECT_FALSE(report.skipped);
  EXPECT_EQ(report.step, 1);
  EXPECT_EQ(report.lr, 0.5);
  EXPECT_EQ(report.norm, std::sqrt(0.5));
  EXPECT_EQ(weight, same_weight);
  copy(optimizer.state(), other.state());
  gradient = {0, 0};
  for (const Optimizer* each : {&optimizer, &other}) {
    each->set("lr", "1");
    EXPECT_EQ(each->step({view(gradient)}).step, 2);
  }
  EXPECT_EQ(weight, same_weight);
  EXPECT_EQ(weight[0], 0.5F) << "0.75 less half the momentum of 0.5";
}

TEST_F(HppOptimizer, StepsOnScaledGradientsAndKeepsCopiesIn16Bits) {
  const Context context;
  const LossScaler scaler(context);
  std::vector<float> weight = {1, 2}, bias = {3}, slope = {0};
  std::vector<uint16_t> half(2, 7);
  const Optimizer optimizer(context, R"({"optimizer": "sgd", "lr": 0.5})", {{"w", view(weight)}, {"b", view(bias)}});
  optimizer.keep_copies({View(DType::bf16, half.data(), {2}, 4), View()});
  const auto step = [&](float first) {
    const auto scale = static_cast<float>(scaler.scale());
    std::vector<float> scaled = {first * scale, -0.5F * scale};
    const OptimizerReport report = optimizer.step(scaler, {view(scaled), view(slope)});
    EXPECT_EQ(scaler.update(), report.skipped);
    return report;
  };
  EXPECT_EQ(step(0.5F).norm, std::sqrt(0.5));
  EXPECT_EQ(half, (std::vector<uint16_t>{0x3F40, 0x4010})) << "0.75 and 2.25";
  EXPECT_TRUE(step(std::numeric_limits<float>::infinity()).skipped);
  optimizer.keep_copies({});
  EXPECT_EQ(step(0.5F).step, 2);
  EXPECT_EQ(weight, (std::vector<float>{0.5F, 2.5F}));
  EXPECT_EQ(half, (std::vector<uint16_t>{0x3F40, 0x4010}));
}

}  // namespace

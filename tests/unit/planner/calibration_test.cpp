#include "planner/calibration.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "device/delayed_backend.h"
#include "models/gpt.h"
#include "planner/rate_fit.h"
#include "recipe/kernel_needs_of.h"
#include "refusal.h"

namespace st {
namespace {

OpTime made_up(std::string name, double flops, double bytes, double seconds, bool is_first = false) {
  return {std::move(name), {.flops = flops, .bytes = bytes}, seconds, is_first};
}

TEST(RateFit, ReturnsTheConstantsOfMadeUpProducts) {
  constexpr double kOverhead = 3e-6, kPerFlop = 8e-12, kPerByte = 5e-11;
  std::vector<OpTime> times;
  for (const double m : {64., 256., 1024.})
    for (const double n : {32., 128., 512., 2048.}) {
      const double flops = 2 * m * n * n, bytes = 4 * (2 * m * n + n * n);
      times.push_back(made_up("linear.f32", flops, bytes, kOverhead + kPerFlop * flops + kPerByte * bytes));
    }
  const OpRate rate = fit_rate("linear.f32", times);
  EXPECT_NEAR(rate.per_flop, kPerFlop, 0.01 * kPerFlop);
  EXPECT_NEAR(rate.seconds({.flops = 0, .bytes = 0}), kOverhead, 0.01 * kOverhead);
  for (const OpTime& time : times) EXPECT_NEAR(rate.seconds(time.work), time.seconds, 0.01 * time.seconds);
  EXPECT_NEAR(rate.seconds({.flops = 1e9, .bytes = 1e8}), 1e9 * kPerFlop + 1e8 * kPerByte, 1e-4);  // larger than any of them
}

TEST(RateFit, TellsAnActivationFromTheProductThatAppliesIt) {
  constexpr double kPerFlop = 2e-12, kPerActivation = 1.2e-9;
  std::vector<OpTime> times;
  for (const double k : {16., 64., 512.})
    for (const double n : {64., 256., 1024.}) {
      OpTime time = made_up("fused_linear.bf16.gelu_tanh", 2 * 64 * n * k, 2 * (64 * n + 64 * k + n * k), 0);
      time.work.activations = 64 * n;
      time.seconds = 1e-6 + kPerFlop * time.work.flops + kPerActivation * time.work.activations;
      times.push_back(time);
    }
  const OpRate rate = fit_rate("fused_linear.bf16.gelu_tanh", times);
  EXPECT_NEAR(rate.per_activation, kPerActivation, 0.01 * kPerActivation);
  for (const OpTime& time : times) EXPECT_NEAR(rate.seconds(time.work), time.seconds, 0.01 * time.seconds);
}

TEST(RateFit, FollowsMemoryFromCacheToMain) {
  const auto seconds = [](double bytes) { return 1e-6 + bytes / 40e9 + std::max(0.0, bytes - 2e6) / 10e9; };
  std::vector<OpTime> times;
  for (double bytes = 1e3; bytes < 1e8; bytes *= 2)
    for (const double noise : {1.0, 0.99, 1.01, 1.0, 5.0}) times.push_back(made_up("add.f32", 0, bytes, noise * seconds(bytes)));
  const OpRate rate = fit_rate("add.f32", times);
  EXPECT_EQ(rate.per_flop, 0);
  for (double bytes = 1e3; bytes < 1e8; bytes *= 2)
    EXPECT_NEAR(rate.seconds({.flops = 0, .bytes = bytes}), seconds(bytes), 0.01 * seconds(bytes)) << bytes;
  EXPECT_GT(rate.seconds({.flops = 0, .bytes = 1e10}), 1e10 / 40e9);
}

TEST(RateFit, FillsTheClassesAndLeavesFirstInstructionsOut) {
  const std::vector<OpTime> times = {
      made_up("add.f32", 0, 1e6, 1e-4),        made_up("add.f32", 0, 1e6, 7e-4, true), made_up("embedding.f32", 0, 1e6, 2e-4, true),
      made_up("linear.bf16.t", 1e9, 1e6, 0.1), made_up("matmul.f32", 1e9, 1e6, 0.5),   made_up("reduce_scatter.f32", 0, 1e6, 0.2),
      made_up("send.f32", 0, 1e6, 0.3),
  };
  RateSet set{.threads = 1, .ranks = 2, .ops = fit_rates(times), .step = 0};
  const auto seconds = [&](std::string_view name, double flops) {
    const OpRate* const rate = set.find(name);
    return rate == nullptr ? -1 : rate->seconds({.flops = flops, .bytes = 1e6});
  };
  EXPECT_NEAR(seconds("add.f32", 0), 1e-4, 1e-9);
  EXPECT_NEAR(seconds("embedding.f32", 0), 2e-4, 1e-9);  // there is no other
  EXPECT_NEAR(seconds("products.bf16", 1e9), 0.1, 1e-3);
  EXPECT_NEAR(seconds("products.f32", 1e9), 0.5, 1e-3);
  EXPECT_NEAR(seconds("exchange.data", 0), 0.2, 1e-9);
  EXPECT_NEAR(seconds("exchange.tensor", 0), 0.2, 1e-9);
  EXPECT_NEAR(seconds("exchange.stage", 0), 0.3, 1e-9);
  EXPECT_GT(seconds("memory", 0), 0);
}

std::shared_ptr<Context> one_thread() {
  return std::make_shared<Context>(ContextOptions{.threads = 1, .log = {}, .parallel = {}, .memory = {}});
}

void expect_sound(const RateSet& set) {
  EXPECT_TRUE(std::isfinite(set.step) && set.step >= 0);
  for (const OpRate& rate : set.ops) {
    EXPECT_TRUE(std::isfinite(rate.per_flop) && rate.per_flop >= 0) << rate.name;
    ASSERT_FALSE(rate.by_bytes.empty()) << rate.name;
    for (size_t i = 0; i < rate.by_bytes.size(); ++i) {
      EXPECT_TRUE(std::isfinite(rate.by_bytes[i].seconds) && rate.by_bytes[i].seconds >= 0) << rate.name;
      EXPECT_TRUE(i == 0 || rate.by_bytes[i].bytes > rate.by_bytes[i - 1].bytes) << rate.name;
      EXPECT_TRUE(i == 0 || rate.by_bytes[i].seconds >= rate.by_bytes[i - 1].seconds) << rate.name;
    }
  }
}

TEST(Calibration, HasARateOfEveryInstructionOfASmallGpt) {
  const auto context = one_thread();
  const Machine machine = calibrate(context, {.seconds = 0.2, .is_quick = true, .library = "1.2.3"});
  ASSERT_EQ(machine.rates.size(), 1U);
  const RateSet& set = machine.rates.front();
  expect_sound(set);
  for (const char* precision : {"fp32", "bf16"}) {
    Recipe recipe{.batch = 2, .accumulate = 2};
    recipe.precision = precision;
    const Plan plan =
        plan_training(build_gpt({.layers = 2, .width = 64, .heads = 2, .context = 32}), recipe, kernel_needs(machine.profile));
    for (const Instruction& at : plan.instructions)
      if (at.makes != Copy::lasting) {
        const OpRate* const rate = set.find(rate_name(plan, at));
        ASSERT_NE(rate, nullptr) << rate_name(plan, at);
        const double seconds = rate->seconds(work_of(plan, at, recipe.accumulate));
        EXPECT_TRUE(std::isfinite(seconds) && seconds >= 0) << rate->name;
      }
  }
  EXPECT_EQ(json_of(parse_machine(json_of(machine))), json_of(machine));
}

TEST(Calibration, AnotherMachineOrVersionIsNamed) {
  const auto context = one_thread();
  Machine machine = calibrate(context, {.seconds = 0, .is_quick = true, .library = "1.2.3"});
  EXPECT_EQ(differs_from_here(machine, *context, "1.2.3"), "");
  EXPECT_EQ(differs_from_here(machine, *context, "1.2.4"), "by version 1.2.3, this is 1.2.4");
  machine.processor = "an abacus";
  EXPECT_NE(differs_from_here(machine, *context, "1.2.3").find("on an abacus, this is "), std::string::npos);
  EXPECT_EQ(differs_from_here(machine_named("h200"), *context, "1.2.4"), "");
}

TEST(Calibration, ADeviceOfItsOwnMemoryIsRefused) {
  ContextOptions options;
  options.make_backend = [](const std::shared_ptr<MemorySource>& source) {
    return std::make_unique<DelayedBackend>(make_reference_backend(source), source, Order::eager);
  };
  const auto context = std::make_shared<Context>(options);
  EXPECT_TRUE(refuses(Code::unsupported, {"has its own memory, and cannot be measured yet", "a100-80g"},
                      [&] { (void)calibrate(context, {.seconds = 0, .is_quick = true, .library = "1.0.0"}); }));
}

TEST(Calibration, EndsWhenItsContextIsCancelled) {
  const auto context = one_thread();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    context->cancel();
  });
  EXPECT_TRUE(
      refuses(Code::cancelled, {"cancelled"}, [&] { (void)calibrate(context, {.seconds = 1e6, .is_quick = true, .library = ""}); }));
  other.join();
}

}  // namespace
}  // namespace st

// Training with every optimizer: the same bits for any number of threads, near the reference; and parameter groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backend/kernel_side.h"
#include "base/error.h"
#include "cpu_classes.h"
#include "training.h"

namespace st {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kOptimizers = {"adamw", "adam", "adamw-8bit", "sgd", "adafactor", "lion", "rmsprop", "adagrad", "muon"};

Recipe recipe_of(const std::string& optimizer) {
  Recipe recipe{.batch = 3, .accumulate = 2};
  recipe.set("optimizer", "\"" + optimizer + "\"");
  if (optimizer == "sgd") recipe.set("momentum", "0.9");
  return recipe;
}

struct Trained {
  std::vector<double> losses;
  std::string digest;
};

Trained train(const Training& training, int steps) {
  const auto trainer = training.trainer();
  Trained result{.losses = losses_of(*trainer, steps), .digest = {}};
  result.digest = trainer->state_digest();
  return result;
}

/// Wide enough for adamw-8bit to store some moments in 8 bits.
GptOptions wider_gpt() { return {.layers = 1, .width = 66, .heads = 3, .context = 9, .vocabulary = 70}; }

TEST(Optimizers, HaveTheSameBitsForOneToFourThreads) {
  for (const std::string& optimizer : kOptimizers) {
    const auto with = [&](int threads) {
      return train({.device = "cpu", .threads = threads, .options = wider_gpt(), .recipe = recipe_of(optimizer)}, 4);
    };
    const Trained one = with(1);
    for (const int threads : {2, 3, 4}) {
      EXPECT_EQ(with(threads).losses, one.losses) << optimizer << ", " << threads << " threads";
      EXPECT_EQ(with(threads).digest, one.digest) << optimizer << ", " << threads << " threads";
    }
  }
}

// fp32 against fp64 sums. Lion's steps have the size of the rate for any gradient, so a flipped sign shows at once.
TEST(Optimizers, TrainAsTheReferenceDoesInEachClass) {
  for (const std::string& optimizer : kOptimizers) {
    const Trained wanted = train({.options = wider_gpt(), .recipe = recipe_of(optimizer)}, 6);
    for (const std::string& name : cpu_classes()) {
      const ForcedClass forced(name);
      const Trained found = train({.device = "cpu", .threads = 2, .options = wider_gpt(), .recipe = recipe_of(optimizer)}, 6);
      for (size_t i = 0; i < wanted.losses.size(); ++i)
        EXPECT_NEAR(found.losses[i], wanted.losses[i], 2e-4 * wanted.losses[i]) << optimizer << " on " << name << ", step " << i;
    }
  }
}

TEST(Optimizers, LearnTheirSequences) {
  for (const std::string& optimizer : kOptimizers) {
    Recipe recipe = recipe_of(optimizer);
    recipe.lr = optimizer == "lion" ? 1e-3 : optimizer == "sgd" ? 0.1 : recipe.lr;
    const Trained found = train({.device = "cpu", .threads = 2, .options = wider_gpt(), .recipe = recipe}, 60);
    EXPECT_LT(found.losses.back(), found.losses.front() - 0.05) << optimizer;
  }
}

TEST(Optimizers, ThatLeaveSomeParametersToAdamWSayWhichByTheirState) {
  const auto trainer = Training{.options = wider_gpt(), .recipe = recipe_of("muon")}.trainer();
  const Program& program = trainer->plan().program;
  int matrices = 0, others = 0;
  for (const Slot& slot : program.slots) {
    if (slot.role != Role::parameter) continue;
    const bool by_muon = program.slot_named("momentum." + slot.name) >= 0;
    EXPECT_NE(by_muon, program.slot_named("moment2." + slot.name) >= 0) << slot.name;
    const bool is_embedding = slot.name.find("embedding") != std::string::npos;
    EXPECT_EQ(by_muon, slot.type.shape.rank() == 2 && !is_embedding) << slot.name;
    (by_muon ? matrices : others) += 1;
  }
  EXPECT_GT(matrices, 3);
  EXPECT_GT(others, 3);
}

// --- groups

Training with_groups(const std::string& groups, const std::string& device = "cpu") {
  Recipe recipe{.batch = 3};
  recipe.set("groups", groups);
  return {.device = device, .threads = 2, .recipe = recipe};
}

std::vector<float> values_of(const Trainer& trainer, const std::string& slot) {
  const Executor& executor = trainer.executor();
  const SlotId id = executor.plan().program.slot_named(slot);
  const auto* data = as<float>(executor.slot(id));
  return {data, data + executor.plan().program.slot(id).type.shape.elements()};
}

TEST(ParameterGroups, WhatIsFrozenKeepsItsValuesAndHasNeitherGradientNorState) {
  const auto trainer = with_groups(R"([{"pattern": "block.0.*", "frozen": true}])").trainer();
  const Program& program = trainer->plan().program;
  const std::string frozen = "block.0.mlp.expand.weight", trained = "block.1.mlp.expand.weight";
  ASSERT_GE(program.slot_named(frozen), 0);
  const auto before = values_of(*trainer, frozen), other = values_of(*trainer, trained);
  losses_of(*trainer, 3);
  EXPECT_EQ(values_of(*trainer, frozen), before);
  EXPECT_NE(values_of(*trainer, trained), other);
  EXPECT_LT(program.slot_named("gradient." + frozen), 0);
  EXPECT_LT(program.slot_named("moment1." + frozen), 0);
}

TEST(ParameterGroups, AScaleOfZeroStopsTheRateAndOfOneChangesNothing) {
  const auto still = with_groups(R"([{"pattern": "*", "lr_scale": 0}])").trainer();
  const auto before = values_of(*still, "block.0.mlp.expand.weight");
  losses_of(*still, 2);
  EXPECT_EQ(values_of(*still, "block.0.mlp.expand.weight"), before);
  EXPECT_EQ(train(with_groups(R"([{"pattern": "block.*", "lr_scale": 1, "weight_decay_scale": 1}])"), 3).digest,
            train(with_groups("[]"), 3).digest);
}

// A parameter whose gradient is 0 shows only the decay.
TEST(ParameterGroups, AScaleOfTheDecayIsOneOfTheDecay) {
  Recipe recipe{.batch = 3, .lr = 0.5, .warmup = 0, .weight_decay = 0.25};
  recipe.set("groups", R"([{"pattern": "block.0.*", "weight_decay_scale": 2}, {"pattern": "*", "weight_decay_scale": 0}])");
  const auto trainer = Training{.device = "reference", .recipe = recipe}.trainer();
  double scaled = -1, others = -1;
  for (const Node& node : trainer->plan().program.find(Phase::update)->graph.nodes) {
    if (node.op != Op::adamw) continue;
    const std::string& name = trainer->plan().program.slot(node.writes[0]).name;
    (name.starts_with("block.0.") ? scaled : others) = node.attrs.real("weight_decay");
  }
  EXPECT_EQ(scaled, 0.5);
  EXPECT_EQ(others, 0);
}

// The reported norm is that of all gradients; a group with its own clip is clipped by its own norm.
TEST(ParameterGroups, AreClippedByTheirOwnNorm) {
  const auto trainer = with_groups(R"([{"pattern": "block.0.*", "clip": 1e-3}, {"pattern": "block.1.*", "clip": 0}])").trainer();
  const StepReport report = trainer->step();
  const Executor& executor = trainer->executor();
  const auto factor = [&](const char* slot) {
    return static_cast<double>(*as<float>(executor.slot(executor.plan().program.slot_named(slot))));
  };
  double squares = 0;
  for (const Slot& slot : executor.plan().program.slots)
    if (slot.role == Role::gradient && slot.name.starts_with("gradient.block.0."))
      for (const float g : values_of(*trainer, slot.name)) squares += static_cast<double>(g) * static_cast<double>(g);
  const double unscale = factor("factor.1");  // its clip is off
  EXPECT_NEAR(factor("factor.0") / unscale, 1e-3 / (std::sqrt(squares) * unscale + 1e-6), 1e-5);
  EXPECT_NEAR(factor("factor") / unscale, std::min(1.0, 1 / (report.grad_norm + 1e-6)), 1e-5);
}

TEST(ParameterGroups, TheFirstPatternThatFitsCounts) {
  const auto trainer = with_groups(R"([{"pattern": "*.bias", "optimizer": "sgd"}, {"pattern": "block.*", "optimizer": "lion"}])").trainer();
  for (const Node& node : trainer->plan().program.find(Phase::update)->graph.nodes) {
    if (node.writes.empty() || info_of(node.op).shape_rule != "optimizer") continue;
    const std::string& name = trainer->plan().program.slot(node.writes[0]).name;
    const Op wanted = name.ends_with(".bias") ? Op::sgd : name.starts_with("block.") ? Op::lion : Op::adamw;
    EXPECT_EQ(node.op, wanted) << name;
  }
}

TEST(ParameterGroups, RefuseWhatFitsNothingAndWhatLeavesNothing) {
  const auto refusal = [](const std::string& groups) -> std::string {
    try {
      with_groups(groups).trainer();
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(R"([{"pattern": "blok.*"}])"), HasSubstr("no parameter matches the pattern \"blok.*\"; the parameters are "));
  EXPECT_THAT(refusal(R"([{"pattern": "*", "frozen": true}])"), HasSubstr("every parameter is frozen"));
  EXPECT_THAT(refusal(R"([{"lr_scale": 1}])"), HasSubstr("has no pattern"));
  EXPECT_THAT(refusal(R"({"pattern": "*"})"), HasSubstr("groups must be a list of objects"));
}

// --- clip_value

TEST(ClipValue, BoundsEveryElementOfTheGradientAfterTheNorm) {
  Recipe recipe{.batch = 3, .optimizer = "sgd", .lr = 1, .warmup = 0, .weight_decay = 0, .clip = 0, .clip_value = 1e-3};
  const auto trainer = Training{.device = "cpu", .threads = 2, .recipe = recipe}.trainer();
  const std::string name = "block.0.mlp.expand.weight";
  const auto before = values_of(*trainer, name);
  trainer->step();
  const auto after = values_of(*trainer, name);
  int bounded = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const double moved = std::abs(static_cast<double>(after[i]) - static_cast<double>(before[i]));
    EXPECT_LE(moved, 1e-3 + 1e-7);
    bounded += moved > 1e-3 - 1e-7;
  }
  EXPECT_GT(bounded, 0) << "some gradient is larger";
}

}  // namespace
}  // namespace st

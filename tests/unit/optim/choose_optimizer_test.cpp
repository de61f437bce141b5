#include "optim/choose_optimizer.h"

#include "refusal.h"

namespace st {
namespace {

const Type kMatrix{.dtype = DType::f32, .shape = {64, 128}, .layout = {}};
const Type kVector{.dtype = DType::f32, .shape = {64}, .layout = {}};

NamedOptimizer named(const std::string& name, const std::vector<std::pair<std::string, std::string>>& values = {}) {
  return {.name = name,
          .keys = [values](std::string_view key) -> std::optional<std::string> {
            for (const auto& [given, value] : values)
              if (given == key) return value;
            return std::nullopt;
          },
          .groups = {}};
}

TEST(ChooseOptimizer, KeysBecomeAttributesOfTheirType) {
  const OptimizerChoice choice =
      named("muon", {{"momentum", "0.5"}, {"nesterov", "false"}, {"ns_steps", "3"}, {"adjust_lr", "\"match_rms_adamw\""}})
          .choose("w", kMatrix, true);
  EXPECT_EQ(choice.op, Op::muon);
  const Attrs attrs = make_attrs(choice.op, choice.attrs);
  EXPECT_EQ(attrs.real("momentum"), 0.5);
  EXPECT_FALSE(attrs.flag("nesterov"));
  EXPECT_EQ(attrs.integer("ns_steps"), 3);
  EXPECT_EQ(attrs.word("adjust_lr"), "match_rms_adamw");
}

TEST(ChooseOptimizer, AdamIsAdamWWhoseDecayIsNotDecoupled) {
  EXPECT_FALSE(named("adam", {{"weight_decay", "0.1"}}).choose("w", kMatrix, true).attrs.flag("decoupled"));
}

TEST(ChooseOptimizer, WhatIsNoMatrixOrNoWeightOrSmallIsLeftToAdamW) {
  EXPECT_EQ(named("muon", {{"weight_decay", "0"}}).choose("w", kVector, true).op, Op::adamw);
  EXPECT_EQ(named("muon", {{"weight_decay", "0"}}).choose("w", kMatrix, false).op, Op::adamw);
  EXPECT_EQ(named("adamw-8bit", {{"weight_decay", "0"}}).choose("w", kVector, true).op, Op::adamw);
  EXPECT_EQ(named("adamw-8bit", {{"weight_decay", "0"}}).choose("w", kMatrix, false).op, Op::adamw_8bit);
}

TEST(ChooseOptimizer, RefusesANameThatIsNoneAndNesterovWithoutMomentum) {
  const auto refused = [](NamedOptimizer optimizer) { return error_of([&] { optimizer.choose("w", kMatrix, true); }); };
  EXPECT_TRUE(says(refused(named("adagard")), "\"adagard\" is unknown; did you mean \"adagrad\"?"));
  EXPECT_TRUE(says(refused(named("sgd", {{"weight_decay", "0"}, {"nesterov", "true"}})), "needs a momentum above 0"));
}

TEST(ChooseOptimizer, DefaultsAreOfKeysByName) {
  EXPECT_THAT(optimizer_defaults("lion"), testing::Contains(std::pair<std::string, std::string>("beta2", "0.99")));
  EXPECT_THAT(optimizer_defaults("adamw"), testing::IsEmpty());
  EXPECT_THAT(optimizer_defaults(kAnyOptimizer), testing::Contains(std::pair<std::string, std::string>("epsilon", "1e-10")));
}

}  // namespace
}  // namespace st

// recompute (traps.md, T16): recomputed values have the bits of kept ones, and the peak falls as planned; also with dropout (T15, at one
// rank).
#include <gtest/gtest.h>

#include <numeric>

#include "cpu_classes.h"
#include "sanitized.h"
#include "scoped_program.h"
#include "token_rows.h"
#include "training.h"

namespace st {
namespace {

const GptOptions kGpt = {.layers = 3, .width = 39, .heads = 3, .context = 11, .vocabulary = 61};
const std::vector<std::string> kPolicies = {"blocks", "attention", "full", "block.*.mlp,head", "block.1"};

struct Trained {
  std::vector<double> losses;
  std::string digest;
  bool operator==(const Trained&) const = default;
};

std::unique_ptr<Trainer> gpt_trainer(const Recipe& recipe, int threads = 2, const std::string& device = "cpu", bool with_data = true) {
  return Training{.device = device, .threads = threads, .options = kGpt, .recipe = recipe}.trainer(with_data);
}

Trained trained(const Recipe& recipe, int threads = 2, const std::string& device = "cpu") {
  const auto trainer = gpt_trainer(recipe, threads, device);
  return {losses_of(*trainer, 4), trainer->state_digest()};
}

Recipe recipe_of(const std::string& precision, int64_t accumulate, const std::string& policy) {
  Recipe recipe;
  recipe.precision = precision;
  recipe.batch = 3;
  recipe.accumulate = accumulate;
  recipe.warmup = 0;
  recipe.dropout = 0.1;
  recipe.recompute = policy;
  return recipe;
}

struct Case {
  std::string precision;
  int64_t accumulate;
};

class Recomputed : public ::testing::TestWithParam<Case> {
 protected:
  static Recipe recipe(const std::string& policy) { return recipe_of(GetParam().precision, GetParam().accumulate, policy); }
};

// The model has a tied weight and three dropout sites per block; packed weights with several micro-batches; working copies in bf16.
TEST_P(Recomputed, StepsHaveTheSameBitsForAnyPolicyAndThreads) {
  const Trained none = trained(recipe("none"), 1);
  EXPECT_LT(none.losses.back(), none.losses.front()) << "it learns, so every gradient counts";
  int one = 0;  // index into the numbers of threads, a different one for each policy
  for (const std::string& policy : kPolicies) {
    one = one % 4 + 1;
    for (const int threads : {1, 2, 3, 4})
      if (!kSanitized || threads == one) {
        EXPECT_EQ(trained(recipe(policy), threads), none) << policy << " with " << threads << " threads";
      }
  }
}

TEST_P(Recomputed, StepsHaveTheSameBitsInEveryKernelClass) {
  for (const std::string& name : cpu_classes()) {
    const ForcedClass forced(name);
    const Trained none = trained(recipe("none"));
    for (const char* policy : {"full", "attention"}) EXPECT_EQ(trained(recipe(policy)), none) << policy << " on " << name;
  }
  if (kSanitized && GetParam().accumulate > 1) return;
  EXPECT_EQ(trained(recipe("full"), 1, "reference"), trained(recipe("none"), 1, "reference"));
}

TEST_P(Recomputed, MemoryFallsByExactlyWhatThePlanSays) {
  const auto none = gpt_trainer(recipe("none"));
  const MemoryLayout& kept = none->plan().memory;
  EXPECT_EQ(none->plan().recompute.stash_before, kept.of(Arena::stash));
  for (const std::string& policy : kPolicies) {
    const auto trainer = gpt_trainer(recipe(policy));
    const Plan& plan = trainer->plan();
    EXPECT_EQ(plan.recompute.stash_before, kept.of(Arena::stash)) << policy;
    EXPECT_EQ(plan.recompute.stash_after, plan.memory.of(Arena::stash)) << policy;
    const auto& scopes = plan.recompute.scopes;
    const int64_t saved = std::accumulate(scopes.begin(), scopes.end(), int64_t{0},
                                          [](int64_t sum, const RecomputedScope& scope) { return sum + scope.stash_bytes; });
    EXPECT_EQ(plan.recompute.stash_before - plan.recompute.stash_after, saved) << policy;
    EXPECT_GT(saved, 0) << policy;
    for (int32_t a = 0; a < kArenas; ++a) {
      const auto arena = static_cast<Arena>(a);
      EXPECT_EQ(trainer->executor().allocated(arena), plan.memory.of(arena)) << policy << ", " << name_of(arena);
    }
    EXPECT_EQ(none->memory_bytes() - trainer->memory_bytes(), kept.total() - plan.memory.total()) << policy;
    EXPECT_LT(plan.memory.total(), kept.total()) << policy;
  }
}

TEST_P(Recomputed, StepsOfFewerRowsHaveTheSameBits) {
  const TokenRows all(9, kGpt.context, kGpt.vocabulary);
  const auto run = [&](const std::string& policy, int64_t rows) {
    const auto trainer = gpt_trainer(recipe(policy), 2, "cpu", false);
    for (int step = 0; step < 3; ++step) trainer->step(all.first(rows));
    return trainer->state_digest();
  };
  for (const int64_t left_out : {1, 2, 4}) {
    const int64_t rows = 3 * GetParam().accumulate - left_out;
    if (rows < 1) continue;
    for (const char* policy : {"blocks", "full"}) EXPECT_EQ(run(policy, rows), run("none", rows)) << policy << ", " << rows << " rows";
  }
}

// Two micro-batches per step; the second reuses the first one's working copies.
TEST_P(Recomputed, AHostsLossHasTheSameBits) {
  constexpr int64_t kRows = 3;
  const int64_t logits = kRows * kGpt.context * kGpt.vocabulary;
  const TokenRows tokens(2 * kRows, kGpt.context, kGpt.vocabulary);
  std::vector<float> gradient(static_cast<size_t>(logits));
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i * 37 % 101) / 5000 - 0.01F;
  const auto run = [&](const std::string& policy, bool own_loss) {
    const auto trainer = gpt_trainer(recipe(policy), 2, "cpu", false);
    std::vector<float> seen;
    for (int step = 0; step < 2; ++step) {
      for (int pair = 0; pair < 2; ++pair) {
        const std::vector<HostView> batch = tokens.rows(pair * kRows, kRows);
        const auto outputs = trainer->forward(own_loss ? std::span(batch) : std::span(batch).first(1));
        const auto* values = static_cast<const float*>(outputs[0].data);
        seen.insert(seen.end(), values, values + logits);
        const std::vector<HostView> gradients = {plain_view("logits", DType::f32, {kRows, kGpt.context, kGpt.vocabulary}, gradient.data())};
        if (own_loss)
          trainer->backward_own_loss();
        else
          trainer->backward(gradients);
      }
      trainer->apply();
    }
    return std::pair(seen, trainer->state_digest());
  };
  for (const bool own_loss : {false, true}) {
    const auto none = run("none", own_loss);
    for (const std::string& policy : kPolicies) EXPECT_TRUE(run(policy, own_loss) == none) << policy << (own_loss ? ", own loss" : "");
  }
}

// Nested scopes, values read from inside other scopes, products with several readers, dropout sites with their own rates.
TEST_P(Recomputed, AnyGraphHasTheSameBits) {
  const int64_t rows = 7 * GetParam().accumulate;
  std::vector<float> x(static_cast<size_t>(rows * 6)), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 50 - 1, y[i] = static_cast<float>(i * 23 % 89) / 80;
  const std::vector<HostView> batch = {plain_view("x", DType::f32, {rows, 6}, x.data()), plain_view("y", DType::f32, {rows, 6}, y.data())};
  int compared = 0;
  const uint64_t of_each = kSanitized ? 6 : 1, first = GetParam().precision == "bf16" ? 1 : 0;
  for (uint64_t seed = first * of_each / 2; seed < 60; seed += of_each) {
    const Program program = scoped_program(seed, 4);
    const auto run = [&](const std::string& policy) -> std::string {
      const auto context = std::make_shared<Context>(ContextOptions{.threads = 2, .log = {}, .parallel = {}, .memory = {}});
      Recipe mine = recipe(policy);
      mine.batch = 7;
      Trainer trainer(std::make_shared<Model>(context, program, 1), mine, nullptr);
      for (int step = 0; step < 3; ++step) trainer.step(batch);
      compared += trainer.plan().recompute.scopes.empty() ? 0 : 1;
      return trainer.state_digest();
    };
    const std::string none = run("none");
    for (const char* policy : {"blocks", "block.0,block.2"}) EXPECT_EQ(run(policy), none) << "seed " << seed << ", " << policy;
  }
  EXPECT_GT(compared, kSanitized ? 5 : 60);
}

TEST_P(Recomputed, AutoFitsItsBudgetWithTheSameBits) {
  const auto activations = [](const Trainer& trainer) {
    const MemoryLayout& memory = trainer.plan().memory;
    return memory.of(Arena::activations) + memory.of(Arena::stash) + memory.of(Arena::workspace);
  };
  const Trained none = trained(recipe("none"));
  const int64_t most = activations(*gpt_trainer(recipe("none"))), least = activations(*gpt_trainer(recipe("full")));
  double weight = 0;
  for (const int64_t budget : {most, (3 * most + least) / 4, (most + least) / 2, least}) {
    if (kSanitized && budget == (3 * most + least) / 4) continue;
    Recipe mine = recipe("auto");
    mine.recompute_budget = budget;
    const auto trainer = gpt_trainer(mine);
    EXPECT_LE(activations(*trainer), budget);
    EXPECT_GE(trainer->plan().recompute.cost().weight(), weight) << "less memory costs no less";
    weight = trainer->plan().recompute.cost().weight();
    EXPECT_EQ(weight == 0, budget == most);
    EXPECT_EQ(trained(mine), none) << budget;
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, Recomputed, ::testing::Values(Case{"fp32", 1}, Case{"fp32", 3}, Case{"bf16", 1}, Case{"bf16", 3}),
                         [](const auto& test) { return test.param.precision + "Of" + std::to_string(test.param.accumulate); });

std::unique_ptr<Trainer> limited(const std::string& policy, int64_t accumulate, int64_t ranks, int64_t limit) {
  const auto context =
      std::make_shared<Context>(ContextOptions{.threads = 2, .memory_limit = limit, .log = {}, .parallel = {}, .memory = {}});
  Recipe recipe = recipe_of("fp32", accumulate, policy);
  recipe.ranks = ranks;
  return std::make_unique<Trainer>(std::make_shared<Model>(context, build_gpt(kGpt), 1), recipe, nullptr);
}

TEST(RecomputeAuto, TakesWhatTheMemoryLimitLeaves) {
  const auto trainer = [](const std::string& policy, int64_t limit) { return limited(policy, 2, 1, limit); };
  const auto ample = trainer("auto", int64_t{1} << 40);
  EXPECT_TRUE(ample->plan().recompute.scopes.empty());
  const MemoryLayout& kept = ample->plan().memory;
  const int64_t without_packed = ample->memory_bytes() - kept.of(Arena::packed);
  EXPECT_TRUE(trainer("auto", without_packed)->plan().recompute.scopes.empty()) << "weights are read as they lie first";
  const int64_t limit = without_packed - kept.of(Arena::stash) / 4;
  EXPECT_THROW(trainer("none", limit), Error);
  const auto scarce = trainer("auto", limit);
  EXPECT_FALSE(scarce->plan().recompute.scopes.empty());
  EXPECT_LE(scarce->memory_bytes(), limit);
  EXPECT_THROW(trainer("auto", without_packed - kept.of(Arena::stash)), Error);
}

TEST(RecomputeAuto, LeavesEachOfTheRanksAsThreadsItsPart) {
  const auto trainer = [](const std::string& policy, int64_t limit) { return limited(policy, 1, 2, limit); };
  const auto ample = trainer("none", int64_t{1} << 40);
  const MemoryLayout& kept = ample->plan().memory;
  // Each rank can save half of the missing bytes, none can save all of them: the first to plan must not leave all to the last.
  const int64_t limit = ample->memory_bytes() - 2 * kept.of(Arena::packed) - kept.of(Arena::stash) / 2;
  EXPECT_THROW(trainer("none", limit), Error);
  const auto scarce = trainer("auto", limit);
  EXPECT_LE(scarce->memory_bytes(), limit);
  EXPECT_FALSE(scarce->plan().recompute.scopes.empty());
}

// Uneven shards: a budget that suffices for the first rank is too small for the second.
TEST(RecomputeAuto, NamesABudgetThatEveryRankTakes) {
  Recipe recipe = recipe_of("fp32", 1, "auto");
  recipe.ranks = 2;
  recipe.micro_batches = 5;
  recipe.gradient_noise_scale = true;
  recipe.recompute_budget = 1000;
  const auto trainer = [&] {
    const GptOptions options = {.layers = 3, .width = 40, .heads = 5, .context = 33, .vocabulary = 256};
    return Training{.device = "cpu", .threads = 2, .options = options, .recipe = recipe}.trainer(false);
  };
  const Error error = error_of([&] { trainer(); });
  ASSERT_EQ(error.code(), Code::out_of_memory);
  const size_t least = error.message().find("the smallest is"), number = error.message().find('(', least);
  ASSERT_NE(least, std::string::npos) << error.message();
  recipe.recompute_budget = std::stoll(error.message().substr(number + 1));
  EXPECT_NO_THROW(trainer()) << error.message();
}

TEST(RecomputeRecipes, ThatContradictThemselvesAreRefusedWithAWayOut) {
  Recipe recipe = recipe_of("fp32", 1, "blocks");
  recipe.recompute_budget = 4096;
  const Error error = error_of([&] { gpt_trainer(recipe); });
  ASSERT_EQ(error.code(), Code::invalid_argument);
  for (const char* words : {"recompute_budget is 4096", "recompute is blocks", "auto"})
    EXPECT_NE(error.message().find(words), std::string::npos) << error.message();
}

}  // namespace
}  // namespace st

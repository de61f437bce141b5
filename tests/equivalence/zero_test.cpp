// ZeRO on ranks that are threads: whatever is sharded, all results are bitwise those of one rank (traps.md, T7, T10, T22), and each rank
// has the bytes of the stage's formula (T8). data_parallel_test.cpp has the recipes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/memory_account.h"
#include "ir/build.h"
#include "ir/cuts.h"
#include "models/mlp.h"
#include "passes/gradient_slots.h"
#include "rank_training.h"
#include "recipe/kernel_needs_of.h"
#include "sanitized.h"
#include "saved_trainer.h"

// Replaces the C library's fsync: no power is lost in this test.
extern "C" int fsync(int) { return 0; }

namespace st {
namespace {

Training sharded(const Case& c, int64_t ranks, int64_t zero, int threads = 1) {
  Training made = training_of(c, ranks, threads);
  made.recipe.zero = zero;
  if (c.half_budget) made.recipe.recompute_budget = half_budget(made);
  return made;
}

TEST(ZeroShard, OnceAStepItLeavesTheBitsOfDataParallelWithAnyBucket) {
  for (const int64_t ranks : {2, 3, 5}) {
    const auto of = [&](int64_t zero, const char* bucket, int threads) {
      return outcome_of(*sharded({.name = "", .keys = {{"reduce", "\"step\""}, {"bucket", bucket}}}, ranks, zero, threads).trainer());
    };
    const Outcome whole = of(0, "100000", 1);
    EXPECT_EQ(of(0, "4096", 2), whole) << ranks << " ranks";
    EXPECT_EQ(of(0, "268435456", 1), whole) << ranks << " ranks";
    EXPECT_EQ(of(1, "4096", 2), whole) << ranks << " ranks";
    EXPECT_EQ(of(2, "268435456", 1), whole) << ranks << " ranks";
    EXPECT_EQ(of(3, "100000", 2), whole) << ranks << " ranks";
  }
}

TEST(ZeroShard, OfAllNumbersOfRanksAndWithAMicroBatchARank) {
  for (const int64_t ranks : {1, 2, 3, 4, 5, 8}) {
    const Case one_each{.name = "", .keys = {}, .micro_batches = ranks};
    const Outcome alone = outcome_of(*training_of(one_each, 1).trainer());
    for (const int64_t zero : {1, 2, 3})
      EXPECT_EQ(outcome_of(*sharded(one_each, ranks, zero).trainer()), alone) << ranks << ", zero " << zero;
  }
}

std::vector<float> values_of(const Shape& shape, const std::function<void(const HostView&)>& get) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  get(plain_view("", DType::f32, shape, values.data()));
  return values;
}

TEST(ZeroShard, GivesOutGradientsAndAveragesWhole) {
  const Case c{.name = "", .keys = {{"ema_decay", "0.5"}}, .micro_batches = 3};
  const auto alone = training_of(c, 1).trainer();
  const auto loss = [](Trainer& trainer) { return trainer.evaluate_average(std::make_shared<Sequences>(5, 7, 70)).loss; };
  for (int i = 0; i < 2; ++i) alone->step();
  for (const int64_t zero : {1, 2, 3}) {
    const auto trainer = sharded(c, 3, zero).trainer();
    for (int i = 0; i < 2; ++i) trainer->step();
    for (const SlotId id : trainer->model().parameters()) {
      const Slot& slot = trainer->model().slot(id);
      const auto gradient = [&](Trainer& of) {
        return values_of(slot.type.shape, [&](const HostView& to) { of.gradient(slot.name, to); });
      };
      const auto average = [&](Trainer& of) { return values_of(slot.type.shape, [&](const HostView& to) { of.average(slot.name, to); }); };
      EXPECT_EQ(gradient(*trainer), gradient(*alone)) << slot.name;
      EXPECT_EQ(average(*trainer), average(*alone)) << slot.name;
    }
    EXPECT_EQ(loss(*trainer), loss(*alone));
    trainer->trim();
    EXPECT_EQ(loss(*trainer), loss(*alone));
  }
}

TEST(ZeroShard, OfAnotherNumberOfRanksAndAnotherStageGoesOnWithTheSameBits) {
  struct Place {
    int64_t ranks, zero;
  };
  for (const char* optimizer : {"\"adamw-8bit\"", "\"adafactor\""}) {
    const Case c{.name = "", .keys = {{"precision", "\"bf16\""}, {"ema_decay", "0.9"}, {"optimizer", optimizer}}, .width = kCodedWidth};
    const Outcome whole = outcome_of(*training_of(c, 1).trainer());
    const ScratchFolder folder("zero_test");
    Outcome before;
    for (const Place from : {Place{3, 2}, Place{1, 0}, Place{8, 1}, Place{4, 3}}) {
      const std::string saved = folder / std::to_string(from.ranks);
      const auto trainer = sharded(c, from.ranks, from.zero).trainer();
      before = outcome_of(*trainer, 2);
      save(*trainer, saved);
      for (const Place to : {Place{5, 1}, Place{2, 2}, Place{1, 0}, Place{8, 3}}) {
        if (kSanitized && (from.zero + to.zero) % 2 == 0) continue;
        const auto resumed = sharded(c, to.ranks, to.zero).trainer();
        if (to.ranks == 2 || to.zero == 3) resumed->step();  // discards the state that it had itself
        const ResumeReport report = resume_from(saved, *resumed);
        EXPECT_EQ(report.read, std::ssize(resumed->state_tensors()));
        Outcome after = outcome_of(*resumed, 2);
        after.told.insert(after.told.begin(), before.told.begin(), before.told.end());
        EXPECT_EQ(after, whole) << optimizer << " of " << from.ranks << " ranks on " << to.ranks;
      }
    }
  }
}

// With bf16 all ranks share one master weight and each has its own working copy; with fp32 each rank has its own weight, except in stage 3.
TEST(ZeroShard, SeesWhatTheHostChangesBetweenSteps) {
  for (const char* precision : {"\"bf16\"", "\"fp32\""}) {
    const auto outcome = [&](int64_t ranks, int64_t zero) {
      const auto trainer = sharded({.name = "", .keys = {{"precision", precision}}}, ranks, zero).trainer();
      trainer->step();
      for (const char* name : {"block.0.attention.projection.bias", "block.1.attention.projection.weight"}) {
        const SlotId id = trainer->model().parameter_named(name);
        const Shape& shape = trainer->model().slot(id).type.shape;
        std::vector<float> values(static_cast<size_t>(shape.elements()), 0.03F);
        trainer->model().set(id, plain_view("", DType::f32, shape, values.data()));
      }
      return outcome_of(*trainer, 2);
    };
    const Outcome alone = outcome(1, 0);
    for (const int64_t zero : {0, 2, 3}) EXPECT_EQ(outcome(3, zero), alone) << precision << ", zero " << zero;
  }
}

// A rank that computed nothing has no working copies of its shards, and a skipped step makes none.
TEST(ZeroShard, AStepThatIsSkippedWhereARankHasNoRowsLeavesTheNextOneItsWeights) {
  const Case c{.name = "", .keys = skipping_fp16("2097152"), .micro_batches = 2};
  const Outcome alone = outcome_of(*training_of(c, 1).trainer());
  expect_skips_and_updates(c, alone);
  for (const int64_t zero : {1, 2, 3}) EXPECT_EQ(outcome_of(*sharded(c, 3, zero).trainer()), alone) << "zero " << zero;
}

// T3: it is cut, saved and reported like all others, and no rank waits for its gradient.
TEST(ZeroShard, OfAParameterThatNoOpUsesIsThatOfOneRank) {
  const auto trainer = [](int64_t ranks, int64_t zero) {
    Program program = build_mlp({.inputs = 40, .hidden = {70}, .outputs = 3});
    Builder(program, 0).parameter("unused", {3000}, {.kind = Init::normal, .values = {}});
    Recipe recipe{.device = "cpu", .batch = 1};
    recipe.ranks = ranks;
    recipe.zero = zero;
    recipe.micro_batches = 5;
    recipe.set("weight_decay", "0.5");
    return std::make_unique<Trainer>(std::make_shared<Model>(Training{.device = "cpu"}.context(), std::move(program), 1), recipe, nullptr);
  };
  const auto unused = [](Trainer& of) {
    return values_of({3000}, [&](const HostView& to) { of.model().get(of.model().parameter_named("unused"), to); });
  };
  const auto steps = [](Trainer& of, int count, Outcome told = {}) {
    std::vector<float> x(200), y(15);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    for (int i = 0; i < count; ++i)
      add(told,
          of.step(std::vector<HostView>{plain_view("x", DType::f32, {5, 40}, x.data()), plain_view("y", DType::f32, {5, 3}, y.data())}));
    told.state = of.state_digest();
    return told;
  };
  const auto alone = trainer(1, 0);
  const std::vector<float> first = unused(*alone);
  const Outcome half = steps(*alone, 2), whole = steps(*alone, 2, half);
  const ScratchFolder folder("zero_test_unused");
  for (const int64_t zero : {0, 1, 2, 3}) {
    const auto saving = trainer(3, zero);
    EXPECT_EQ(steps(*saving, 2), half) << "zero " << zero;
    EXPECT_EQ(unused(*saving), first) << "zero " << zero;
    const std::string saved = folder / std::to_string(zero);
    save(*saving, saved);
    const auto resumed = trainer(2, 3 - zero);
    std::vector<float> other(3000);
    resumed->model().set(resumed->model().parameter_named("unused"), plain_view("", DType::f32, {3000}, other.data()));
    resume_from(saved, *resumed);
    EXPECT_EQ(steps(*resumed, 2, half), whole) << "of zero " << zero << " to " << 3 - zero;
    EXPECT_EQ(unused(*resumed), first) << "of zero " << zero << " to " << 3 - zero;
  }
}

// Ranks without rows in a round, or in the whole step, still hold shards that the others need.
TEST(ZeroShard, OfFewerRowsIsThatOfOneRank) {
  const auto outcome = [](const Case& c, int64_t ranks, int64_t zero) {
    return outcome_of_rows(*sharded(c, ranks, zero).trainer(false), {1, 16, 5, 2, 11});
  };
  const Case bf16{.name = "bf16", .keys = {{"precision", "\"bf16\""}}};
  // A short micro-batch takes less memory and could recompute other scopes.
  const Case recomputed{.name = "recompute", .keys = {{"recompute", "\"auto\""}, {"bucket", "20000"}}, .half_budget = true};
  for (const Case& c : {Case{.name = "fp32", .keys = {}}, bf16, recomputed}) {
    const Outcome alone = outcome(c, 1, 0);
    for (const int64_t ranks : {2, 3, 5})
      for (const int64_t zero : {2, 3})
        if (!kSanitized || ranks == zero) {
          EXPECT_EQ(outcome(c, ranks, zero), alone) << c.name << ", " << ranks << ", zero " << zero;
        }
  }
}

TEST(ZeroShard, OfParametersSavesTheModelAndShowsIt) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}}};
  const auto alone = training_of(c, 1).trainer(), trainer = sharded(c, 3, 3).trainer();
  const auto data = std::make_shared<Sequences>(5, 7, 70);
  for (int i = 0; i < 2; ++i) {
    alone->step();
    trainer->step();
    EXPECT_EQ(trainer->model().digest(), alone->model().digest());
    EXPECT_EQ(trainer->evaluate(data).loss, alone->evaluate(data).loss);
  }
}

/// A rank's planned bytes of a role against the table of traps.md: bytes per element of a whole parameter and of this rank's shard.
struct Bytes {
  int64_t whole, piece;
};

int64_t bytes_by(const Program& program, Bytes bytes, const std::function<bool(const Slot& parameter)>& counts = {}) {
  int64_t sum = 0;
  for (size_t s = 0; s < program.slots.size(); ++s) {
    const Slot& slot = program.slots[s];
    if (slot.role != Role::parameter || (counts && !counts(slot))) continue;
    const auto id = static_cast<SlotId>(s);
    sum += bytes.whole * slot.type.shape.elements();
    if (bytes.piece > 0) sum += bytes.piece * shard_elements(program, id, program.rank);
  }
  return sum;
}

int64_t planned(const Program& program, Role role) {
  int64_t sum = 0;
  for (const Slot& slot : program.slots)
    if (slot.role == role) sum += own_type(program, slot).bytes();
  return sum;
}

/// The tied weight's second use has a separate gradient (order of sums 3).
bool is_tied(const Slot& parameter) { return parameter.name == "token_embedding.weight"; }

bool has_copy(const Program& program, const Slot& parameter) {
  return std::ranges::any_of(program.slots,
                             [&](const Slot& slot) { return slot.role == Role::working && &program.slot(slot.of) == &parameter; });
}

Plan plan_of(const Training& training, const Model& model, int32_t rank, bool shares_masters = false) {
  Recipe recipe = training.recipe;
  recipe.device = training.device;
  PlanOptions options;
  options.rank = rank;
  options.shares_masters = shares_masters;
  return plan_training(model.program(), recipe, kernel_needs(profile_of(model.context().backend(), 1)), options);
}

/// For fp32, with `state_bytes` of optimizer state per element.
void expect_the_table(const Program& program, const Recipe& recipe, int64_t state_bytes, const std::string& what) {
  const int64_t zero = recipe.zero, rounds = recipe.micro_batches / recipe.ranks;
  const bool by_micro_batch = rounds > 1 && recipe.reduce == "micro";
  const bool has_whole_gradients = zero == 0 || (zero == 1 && !by_micro_batch) || (rounds > 1 && !by_micro_batch);
  const Bytes gradient = has_whole_gradients ? Bytes{4, 0} : Bytes{0, 4}, state = zero == 0 ? Bytes{state_bytes, 0} : Bytes{0, state_bytes},
              weights = zero == 3 ? Bytes{0, 4} : Bytes{4, 0};
  EXPECT_EQ(planned(program, Role::gradient), bytes_by(program, gradient) + bytes_by(program, gradient, is_tied)) << what;
  EXPECT_EQ(planned(program, Role::optimizer), bytes_by(program, state)) << what;
  EXPECT_EQ(planned(program, Role::parameter), bytes_by(program, weights)) << what;
}

TEST(ZeroShard, HasTheBytesOfTheTable) {
  for (const int64_t zero : {0, 1, 2, 3})
    for (const int64_t rounds : {1, 2})
      for (const char* reduce : {"\"micro\"", "\"step\""})
        for (const int64_t ranks : {2, 4}) {
          if (kSanitized && ranks == 4 && zero % 2 == 0) continue;
          const Training training =
              sharded({.name = "", .keys = {{"reduce", reduce}, {"ema_decay", "0.5"}}, .micro_batches = rounds * ranks}, ranks, zero);
          const auto model = training.model();
          int64_t pieces = 0;
          for (int32_t rank = 0; rank < ranks; ++rank) {
            const Plan plan = plan_of(training, *model, rank);
            const std::string what = text("rank ", rank, " of ", ranks, ", zero ", zero, ", ", rounds, " rounds, ", reduce);
            const auto& program = plan.program;
            expect_the_table(program, training.recipe, 12, what);
            const auto aligned = [&](Role role) { return 64 * std::ranges::count(program.slots, role, &Slot::role); };
            for (const auto& [arena, role] :
                 {std::pair{Arena::gradients, Role::gradient}, {Arena::optimizer, Role::optimizer}, {Arena::parameters, Role::parameter}}) {
              EXPECT_GE(plan.memory.of(arena), planned(program, role)) << what;
              EXPECT_LT(plan.memory.of(arena), planned(program, role) + aligned(role)) << what;
            }
            pieces += bytes_by(program, {0, 1});
          }
          EXPECT_EQ(pieces, model->elements());
        }
}

// T8: a step's buffers take exactly the planned bytes of the context, by role, and the plans match the table.
TEST(ZeroShard, OfTwelveLayersTakesTheBytesThatArePlanned) {
  struct Step {
    int64_t rounds;
    const char *reduce, *precision;
  };
  for (const int64_t zero : {0, 1, 2, 3})
    for (const int64_t ranks : {2, 4})
      for (const auto& [rounds, reduce, precision] :
           {Step{1, "\"micro\"", "\"bf16\""}, {2, "\"micro\"", "\"fp32\""}, {2, "\"step\"", "\"fp32\""}}) {
        if (rounds == 1 && ranks == 4) continue;  // as 2 ranks
        if (kSanitized && (ranks == 4 || (rounds == 1) != (zero == 2))) continue;
        Training training =
            sharded({.name = "", .keys = {{"reduce", reduce}, {"precision", precision}}, .micro_batches = rounds * ranks}, ranks, zero);
        training.options = {.layers = 12, .width = 24, .heads = 2, .context = 4, .vocabulary = 50};
        training.recipe.batch = 1;
        const auto trainer = training.trainer();
        trainer->step();
        const std::string what = text(ranks, " ranks, zero ", zero, ", ", rounds, " rounds, ", reduce, ", ", precision);
        const MemoryAccount::Uses uses = trainer->model().context().memory()->account().uses();
        for (int32_t a = 0; a < static_cast<int32_t>(Arena::host); ++a) {
          const auto arena = static_cast<Arena>(a);
          int64_t in_plans = 0;
          for (const Plan* plan : trainer->plans()) in_plans += plan->memory.of(arena);
          // Parameters that the ranks share are in the model.
          if (arena == Arena::parameters) in_plans = std::max(in_plans, trainer->model().storage().bytes());
          EXPECT_EQ(uses.of[static_cast<size_t>(role_of(arena))].now, in_plans) << name_of(arena) << ", " << what;
        }
        EXPECT_EQ(trainer->memory_bytes(), uses.all.now) << what;
        for (const Plan* plan : trainer->plans())
          if (rounds > 1) expect_the_table(plan->program, trainer->recipe(), 8, what);
      }
}

// 16-bit weights: 2 P + 16 P / N; a rank's shards of the fp32 masters are in the model, at rank 0.
TEST(ZeroShard, HasMastersOfSixteenBitWeightsOnceForAllRanks) {
  for (const int64_t zero : {1, 2}) {
    const Training training = sharded({.name = "", .keys = {{"precision", "\"bf16\""}}}, 4, zero);
    const auto model = training.model();
    for (int32_t rank = 0; rank < 4; ++rank) {
      const Plan plan = plan_of(training, *model, rank, true);
      const Program& program = plan.program;
      const auto is_master = [&](const Slot& parameter) { return has_copy(program, parameter); };
      const auto is_read_in_fp32 = [&](const Slot& parameter) { return !is_master(parameter); };
      const int64_t own = bytes_by(program, {4, 0}, rank == 0 ? std::function<bool(const Slot&)>() : is_read_in_fp32);
      EXPECT_GE(plan.memory.of(Arena::parameters), own);
      EXPECT_LT(plan.memory.of(Arena::parameters), own + 64 * std::ranges::count(program.slots, Role::parameter, &Slot::role));
      EXPECT_EQ(planned(program, Role::working), bytes_by(program, {2, 0}, is_master));
      EXPECT_EQ(planned(program, Role::optimizer), bytes_by(program, {0, 8}));
      EXPECT_GT(bytes_by(program, {2, 0}, is_master), bytes_by(program, {2, 0}, is_read_in_fp32));  // otherwise the test is weak
    }
  }
}

// Without activations: 18 P / N for 16-bit weights, 16 P / N for fp32, plus the units that are whole at a time, here a block's. A parameter
// that no product uses has no 16-bit copy; a second use has a separate gradient.
TEST(ZeroShard, OfTwelveLayersHasTheBytesOfTheTableAndOneBlockWhole) {
  for (const bool is_low : {false, true})
    for (const int64_t ranks : {2, 4}) {
      if (kSanitized && is_low != (ranks == 4)) continue;
      Training training =
          sharded({.name = "", .keys = {{"precision", is_low ? "\"bf16\"" : "\"fp32\""}}, .micro_batches = 2 * ranks}, ranks, 3);
      training.options = {.layers = 12, .width = 64, .heads = 4, .context = 8, .vocabulary = 100};
      const auto model = training.model();
      int64_t parameters = 0;
      for (int32_t rank = 0; rank < ranks; ++rank)
        for (const bool shares : {false, true}) {
          const Plan plan = plan_of(training, *model, rank, shares);
          const Program& program = plan.program;
          const auto is_low_too = [&](const Slot& parameter) { return has_copy(program, parameter); };
          const int64_t table =
              bytes_by(program, {0, shares ? 12 : 16}) + bytes_by(program, {0, 2}, is_low_too) + bytes_by(program, {0, 4}, is_tied);
          const MemoryLayout& memory = plan.memory;
          const int64_t lasting =
              memory.of(Arena::parameters) + memory.of(Arena::packed) + memory.of(Arena::gradients) + memory.of(Arena::optimizer);
          EXPECT_GE(lasting, table);
          EXPECT_LT(lasting, table + 64 * 5 * std::ranges::count(program.slots, Role::parameter, &Slot::role));
          EXPECT_EQ(memory.of(Arena::parameters) == 0, shares);  // otherwise they are in the model
          const int64_t width = 64, norms = 4 * width * 4, block = (12 * width * width + 9 * width) * (is_low ? 2 : 4) + norms;
          EXPECT_LE(memory.of(Arena::buckets), block);
          EXPECT_GE(memory.of(Arena::buckets), block - norms / 2);  // the first norm's are freed before all products' are gathered
          if (shares) parameters += bytes_by(program, {0, 1});
        }
      EXPECT_EQ(parameters, model->elements());
    }
}

// By hand (--gtest_also_run_disabled_tests): CI runs the covering selection above. tests/bench/README.md has the hashes.
TEST(ZeroProduct, DISABLED_OfRanksStagesBucketsAndOverlapHasOneStateForMicroAndOneForEachNumberOfRanksForStep) {
  for (const char* precision : {"\"fp32\"", "\"bf16\"", "\"fp16\""}) {
    std::optional<Outcome> micro;
    for (const int64_t ranks : {1, 2, 3, 4, 5, 8}) {
      std::optional<Outcome> step;
      for (const int64_t zero : {0, 1, 2, 3})
        for (const char* bucket : {"4096", "1048576", "268435456"})
          for (const char* overlap : {"\"on\"", "\"off\""})
            for (const bool by_step : {false, true}) {
              const Case c{
                  .name = "",
                  .keys = {
                      {"precision", precision}, {"bucket", bucket}, {"overlap", overlap}, {"reduce", by_step ? "\"step\"" : "\"micro\""}}};
              const Outcome outcome = outcome_of(*sharded(c, ranks, zero).trainer());
              std::optional<Outcome>& expected = by_step ? step : micro;
              if (!expected) expected = outcome;
              EXPECT_EQ(outcome, *expected) << precision << ", " << ranks << " ranks, zero " << zero << ", bucket " << bucket
                                            << ", overlap " << overlap << (by_step ? ", step" : ", micro");
            }
      std::printf("%s, %d ranks: step %s, micro %s\n", precision, static_cast<int>(ranks), step->state.c_str(), micro->state.c_str());
    }
  }
}

}  // namespace
}  // namespace st

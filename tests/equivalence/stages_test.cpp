// Pipeline stages on ranks that are threads: with every schedule, and with data ranks and ZeRO beside it, all results are bitwise those of
// one rank (traps.md, T17).
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "plan/wire_bytes.h"
#include "rank_training.h"
#include "resumed_by.h"
#include "sanitized.h"
#include "saved_trainer.h"
#include "scoped_program.h"
#include "staged_training.h"
#include "thrown_error.h"

// Replaces the C library's fsync: no power is lost in this test.
extern "C" int fsync(int) { return 0; }

namespace st {
namespace {

TEST(PipelineStages, HaveTheBitsOfOneRankWithEverySchedule) {
  const Case plain{.name = "", .keys = {}};
  const Outcome alone = outcome_of(*staged(plain, {}).trainer());
  int64_t sharing = 0;  // stages whose chunks share memory of the stash
  for (const int64_t stages : {2, 3, 4})
    for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}) {
      const Topology t{.stages = stages, .schedule = schedule};
      const auto trainer = staged(plain, t).trainer();
      EXPECT_EQ(outcome_of(*trainer), alone) << text_of(t);
      for (const Plan* plan : trainer->plans()) sharing += plan->memory.stash.at(0).begins.empty() ? 0 : 1;
    }
  EXPECT_GT(sharing, 0);
}

/// 1F1B written out; one that splits some backwards and lets gradients of weights wait; one in a V.
TEST(PipelineStages, HaveTheBitsOfOneRankWithAHostsTable) {
  const Case four{.name = "", .keys = {}, .micro_batches = 4}, eight{.name = "", .keys = {}};
  const Outcome alone = outcome_of(*staged(four, {}).trainer()), of_eight = outcome_of(*staged(eight, {}).trainer());
  const char* const odd = "0F0,0F1,0F2,0I0,0W0,0F3,0B1,0I2,0I3,0W2,0W3\n1F0,1B0,1F1,1F2,1I1,1F3,1I2,1I3,1W1,1W2,1W3";
  for (const char* table : {"0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3", odd}) {
    EXPECT_EQ(outcome_of(*staged(four, {.stages = 2, .schedule = table}).trainer()), alone) << table;
    const Topology shared{.stages = 2, .data = 2, .zero = 2, .schedule = table};  // of eight micro-batches, four on each data rank
    EXPECT_EQ(outcome_of(*staged(eight, shared).trainer()), of_eight) << table;
  }
  const std::string v = print_schedule(make_schedule("zb-v", 3, 2, 4));
  EXPECT_EQ(outcome_of(*staged(four, {.stages = 3, .schedule = v.c_str()}).trainer()), alone);
}

/// Any stage does next any action that is possible by then, with whole and split backwards.
std::string random_table(uint64_t seed, int32_t stages, int32_t chunks, bool is_v, int32_t micro_batches) {
  std::mt19937_64 draw(seed);
  PipelineSchedule table{.stages = stages, .chunks = chunks, .micro_batches = micro_batches, .actions = {}};
  table.placement = is_v ? PipelineSchedule::Placement::v : PipelineSchedule::Placement::loop;
  table.actions.resize(static_cast<size_t>(stages));
  const auto parts = static_cast<size_t>(table.parts());
  std::vector<int32_t> forward(parts), input(parts), weight(parts);  // done
  for (;;) {
    std::vector<std::pair<int32_t, StageAction>> possible;
    for (int32_t part = 0; part < table.parts(); ++part) {
      const auto p = static_cast<size_t>(part);
      const auto add = [&](Phase phase, int32_t k) { possible.push_back({part, {phase, table.chunk_of(part), k}}); };
      if (forward[p] < (part == 0 ? micro_batches : forward[p - 1])) add(Phase::forward, forward[p]);
      if (input[p] < std::min(forward[p], p + 1 == parts ? micro_batches : input[p + 1])) {
        add(Phase::backward_input, input[p]);
        if (weight[p] == input[p]) add(Phase::backward, input[p]);
      }
      if (weight[p] < input[p]) add(Phase::backward_weight, weight[p]);
    }
    if (possible.empty()) return print_schedule(table);
    const auto& [part, action] = possible[draw() % possible.size()];
    const auto p = static_cast<size_t>(part);
    forward[p] += action.phase == Phase::forward;
    input[p] += action.phase == Phase::backward || action.phase == Phase::backward_input;
    weight[p] += action.phase == Phase::backward || action.phase == Phase::backward_weight;
    table.actions[static_cast<size_t>(table.stage_of(part))].push_back(action);
  }
}

TEST(PipelineStages, HaveTheBitsOfOneRankWithRandomTables) {
  const Case six{.name = "", .keys = {}, .micro_batches = 6};
  const Outcome alone = outcome_of(*staged(six, {}).trainer());
  for (uint64_t seed = 0; seed < (kSanitized ? 4 : 12); ++seed) {
    const auto stages = static_cast<int32_t>(2 + seed % 3);
    const std::string table = random_table(seed, stages, stages == 4 ? 1 : 2, seed % 2 == 1, 6);
    EXPECT_EQ(outcome_of(*staged(six, {.stages = stages, .schedule = table.c_str()}).trainer()), alone) << table;
  }
}

TEST(PipelineStages, BesideDataRanksAndZero) {
  const Case seven{.name = "", .keys = {}, .micro_batches = 7};  // the last round is not whole
  const Outcome alone = outcome_of(*staged(seven, {}).trainer());
  constexpr const char* kSchedules[] = {"1f1b", "interleaved", "zb-h1", "zb-v"};
  for (int64_t i = 0; i < 4; ++i)
    for (const int64_t data : {2, 3})
      for (const int64_t zero : {0, 1, 2, 3}) {
        // Half of the combinations, all pairs.
        if (std::getenv("ST_LONG_TRIALS") == nullptr && (i / 2 + data + zero) % 2 != 0) continue;
        const Topology t{.stages = 2, .data = data, .zero = zero, .schedule = kSchedules[i]};
        EXPECT_EQ(outcome_of(*staged(seven, t).trainer()), alone) << text_of(t);
      }
}

class StagesByRecipe : public testing::TestWithParam<Case> {};

TEST_P(StagesByRecipe, HaveTheBitsOfOneRank) {
  const Case& c = GetParam();
  const Outcome alone = outcome_of(*staged(c, {}).trainer());
  expect_skips_and_updates(c, alone);
  for (const Topology& t :
       {Topology{.stages = 3}, Topology{.stages = 2, .data = 2, .zero = 1, .schedule = "interleaved"},
        Topology{.stages = 2, .data = 2, .zero = 2, .schedule = "zb-v"}, Topology{.stages = 4, .data = 2, .zero = 3, .schedule = "zb-h1"}})
    EXPECT_EQ(outcome_of(*staged(c, t).trainer()), alone) << text_of(t);
}

INSTANTIATE_TEST_SUITE_P(
    All, StagesByRecipe,
    testing::Values(Case{.name = "bf16", .keys = {{"precision", "\"bf16\""}}}, Case{.name = "fp16", .keys = skipping_fp16()},
                    Case{.name = "dropout", .keys = {{"dropout", "0.2"}}}, Case{.name = "ragged", .keys = {}, .ignored = true},
                    Case{.name = "recompute", .keys = {{"recompute", "\"full\""}}},
                    Case{.name = "muon", .keys = {{"optimizer", "\"muon\""}}},
                    Case{.name = "eight_bits", .keys = {{"precision", "\"bf16\""}, {"optimizer", "\"adamw-8bit\""}}, .width = kCodedWidth},
                    Case{.name = "average", .keys = {{"ema_decay", "0.9"}}},
                    Case{.name = "groups", .keys = {{"groups", R"([{"pattern": "*.bias", "weight_decay_scale": 0, "clip": 0.1}])"}}},
                    Case{.name = "frozen", .keys = {{"groups", R"([{"pattern": "block.0.*", "frozen": true}])"}}},
                    Case{.name = "frozen_table", .keys = {{"groups", R"([{"pattern": "token_embedding.*", "frozen": true}])"}}},
                    Case{.name = "all_bf16", .keys = all_in_bf16()},
                    Case{.name = "small_buckets", .keys = {{"bucket", "4096"}, {"overlap", "\"off\""}}},
                    Case{.name = "offload", .keys = {{"offload", "\"parameters\""}}},
                    Case{.name = "one_micro_batch", .keys = {}, .micro_batches = 1}),
    [](const auto& instance) { return instance.param.name; });

/// Reduced once a step, the state depends on the number of data ranks, not on the stages.
TEST(PipelineStages, OnceAStepHaveTheBitsOfTheirDataRanks) {
  const Case c{.name = "", .keys = {{"reduce", "\"step\""}}, .micro_batches = 7};
  const Outcome whole = outcome_of(*staged(c, {.data = 3}).trainer());
  for (const int64_t zero : {0, 2, 3}) EXPECT_EQ(outcome_of(*staged(c, {.stages = 3, .data = 3, .zero = zero}).trainer()), whole) << zero;
}

/// The last micro-batch is short, or some data ranks have no rows at all.
TEST(PipelineStages, OnAnyNumberOfRows) {
  const Case c{.name = "", .keys = {}, .micro_batches = 6};
  const Outcome alone = outcome_of_rows(*staged(c, {}).trainer(false), {12, 11, 5, 1, 7});
  for (const Topology& t :
       {Topology{.stages = 2, .schedule = "zb-v"}, Topology{.stages = 3, .data = 2, .zero = 3, .schedule = "interleaved"},
        Topology{.stages = 2, .data = 3, .zero = 1}})
    EXPECT_EQ(outcome_of_rows(*staged(c, t).trainer(false), {12, 11, 5, 1, 7}), alone) << text_of(t);
}

/// T22: saved on one topology, loaded on another.
TEST(PipelineStages, GoOnWhereAnotherTopologyWasSaved) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}, {"ema_decay", "0.9"}}};
  const Outcome whole = outcome_of(*staged(c, {}).trainer());
  const ScratchFolder folder("stages_test");
  const std::vector<Topology> all = {{},
                                     {.stages = 3, .schedule = "zb-h1"},
                                     {.stages = 2, .data = 2, .zero = 2},
                                     {.data = 4, .zero = 3},
                                     {.stages = 2, .data = 3, .zero = 0, .schedule = "zb-v"}};
  for (size_t from = 0; from < all.size(); ++from) {
    const std::string saved = folder / std::to_string(from);
    const auto trainer = staged(c, all[from]).trainer();
    const Outcome before = outcome_of(*trainer, 2);
    save(*trainer, saved);
    for (const size_t number : resumed_by(from, all.size())) {
      const Topology& to = all[number];
      const auto resumed = staged(c, to).trainer();
      resumed->step();  // its own state gives way
      const ResumeReport report = resume_from(saved, *resumed);
      EXPECT_EQ(report.read, std::ssize(resumed->state_tensors()));
      Outcome after = outcome_of(*resumed, 2);
      after.told.insert(after.told.begin(), before.told.begin(), before.told.end());
      EXPECT_EQ(after, whole) << text_of(all[from]) << ", then " << text_of(to);
    }
  }
}

/// Residuals across several parts, values read again behind a scope, dropout: whatever a host's graph may have.
TEST(PipelineStages, OfRandomGraphsHaveTheBitsOfOneRank) {
  for (uint64_t seed = 0; seed < (kSanitized ? 4 : 12); ++seed) {
    const auto outcome = [&](const Topology& t, const char* starts = "") {
      Recipe recipe{.device = "cpu", .batch = 2};
      recipe.stages = t.stages;
      recipe.ranks = t.stages * t.data;
      recipe.zero = t.zero;
      recipe.schedule = t.schedule;
      recipe.stage_starts = starts;
      recipe.micro_batches = 6;
      recipe.dropout = 0.1;
      recipe.threads = 1;
      Trainer trainer(std::make_shared<Model>(Training{.device = "cpu"}.context(), scoped_program(seed, 6), 1), recipe, nullptr);
      std::vector<float> x(72), y(72);
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = std::sin(static_cast<float>(i + seed));
        y[i] = std::cos(static_cast<float>(i));
      }
      Outcome told;
      for (int i = 0; i < 3; ++i)
        add(told, trainer.step(std::vector<HostView>{plain_view("x", DType::f32, {12, 6}, x.data()),
                                                     plain_view("y", DType::f32, {12, 6}, y.data())}));
      told.state = trainer.state_digest();
      return told;
    };
    const Outcome alone = outcome({});
    for (const Topology& t : {Topology{.stages = 2, .schedule = "zb-v"}, Topology{.stages = 3, .schedule = "zb-h1"},
                              Topology{.stages = 3, .schedule = "interleaved"}, Topology{.stages = 2, .data = 2, .zero = 3}}) {
      try {
        EXPECT_EQ(outcome(t), alone) << "seed " << seed << ", " << text_of(t);
      } catch (const Error& error) {
        EXPECT_TRUE(is_error(error, Code::invalid_argument, {"would have no parameter"})) << "seed " << seed << ", " << text_of(t);
      }
    }
  }
}

/// T6, T8.
TEST(PipelineStages, SendAndAllocateWhatTheirPlansSay) {
  for (const Topology& t : {Topology{.stages = 2}, Topology{.stages = 3, .data = 2, .zero = 2, .schedule = "interleaved"},
                            Topology{.stages = 2, .data = 2, .zero = 3, .schedule = "zb-v"}})
    for (const char* precision : {"\"fp32\"", "\"bf16\""}) {
      const Case c{.name = "", .keys = {{"precision", precision}}, .micro_batches = 8};
      const auto trainer = staged(c, t).trainer();
      trainer->step();
      const std::vector<int64_t> before = trainer->sent_bytes();
      trainer->step();
      const std::vector<int64_t> after = trainer->sent_bytes();
      int64_t parameters = 0;
      for (size_t rank = 0; rank < after.size(); ++rank) {
        const Plan& plan = *trainer->plans()[rank];
        EXPECT_EQ(after[rank] - before[rank], wire_bytes(plan, c.micro_batches).all()) << "rank " << rank << ", " << text_of(t);
        EXPECT_GT(wire_bytes(plan, c.micro_batches).messages, 0) << "rank " << rank;
        parameters += plan.memory.of(Arena::parameters);
      }
      if (t.data == 1) {
        EXPECT_EQ(parameters, 0) << "the model's own are in this process";
      }
    }
}

/// What one stage has in flight under 1F1B is the bound of traps.md.
TEST(PipelineStages, KeepAsManyMicroBatchesAsTheirSchedule) {
  for (const int64_t stages : {2, 3, 4}) {
    const auto trainer = staged({.name = "", .keys = {}, .micro_batches = 6}, {.stages = stages}).trainer(false);
    for (int64_t stage = 0; stage < stages; ++stage)
      EXPECT_EQ(trainer->plans()[static_cast<size_t>(stage)]->memory.stash.at(0).count, std::min<int64_t>(6, stages - stage));
  }
}

int64_t activation_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const Arena arena : {Arena::activations, Arena::stash, Arena::workspace}) bytes += plan.memory.of(arena);
  return bytes;
}

/// Recompute auto fits each stage's own scopes into the budget: the first stage, which keeps most micro-batches, repeats more than the
/// last.
TEST(PipelineStages, RecomputeWhatEachStagesMemoryNeeds) {
  const Case plain{.name = "", .keys = {}};
  const Outcome alone = outcome_of_rows(*staged(plain, {}).trainer(false), {16, 5});
  for (const Topology& t : {Topology{.stages = 3}, Topology{.stages = 2, .data = 2, .zero = 3, .schedule = "interleaved"},
                            Topology{.stages = 2, .schedule = "zb-v"}}) {
    if (kSanitized && t.stages == 2 && t.data == 1) continue;
    Training training = staged(plain, t);
    const auto most_of = [&](const char* recompute) {
      training.recipe.recompute = recompute;
      int64_t most = 0;
      const auto trainer = training.trainer(false);
      for (const Plan* plan : trainer->plans()) most = std::max(most, activation_bytes(*plan));
      return most;
    };
    const int64_t kept = most_of("none"), least = most_of("full");
    training.recipe.recompute_budget = (kept + least) / 2;
    training.recipe.recompute = "auto";
    const auto trainer = training.trainer(false);
    for (const Plan* plan : trainer->plans()) EXPECT_LE(activation_bytes(*plan), training.recipe.recompute_budget) << text_of(t);
    std::vector<std::string> names;
    for (const RecomputedScope& scope : trainer->plan().recompute.scopes) names.push_back(scope.name);
    EXPECT_FALSE(names.empty()) << text_of(t);
    for (const std::string& name : names) EXPECT_FALSE(t.stages == 3 && (name.starts_with("block.5") || name == "head")) << name;
    EXPECT_EQ(outcome_of_rows(*trainer, {16, 5}), alone) << text_of(t);
  }
}

TEST(PipelineStages, WhoseRowsFailOnOneRankFailOnceAndGoOn) {
  for (const char* schedule : {"1f1b", "zb-v"}) {
    const Training training = staged({.name = "", .keys = {}}, {.stages = 2, .data = 2, .schedule = schedule});
    const Outcome whole = outcome_of(*training.trainer());
    for (const int at : {9, 22}) {
      std::atomic<int> fills = 0;
      const auto trainer = trainer_of(training, [&] {
        if (fills.fetch_add(1) == at) fail(Code::callback, "the rows are not there");
      });
      const Outcome outcome = outcome_with_a_failure(
          *trainer, [](const Error& error) { EXPECT_TRUE(is_error(error, Code::callback, {"the rows are not there"})); });
      EXPECT_EQ(outcome, whole) << schedule << ", fill " << at;
    }
  }
}

const Topology kSearched[] = {{.stages = 3},
                              {.stages = 2, .schedule = "gpipe"},
                              {.stages = 2, .data = 2, .zero = 2, .schedule = "interleaved"},
                              {.stages = 2, .data = 2, .zero = 3, .schedule = "zb-v"}};

/// The message of one rank, and the stage that made the value: a later stage has an earlier micro-batch's, or of the same one another's.
TEST(PipelineStages, NameTheFirstValueThatIsNotFiniteAsOneRankDoes) {
  const auto found = [](const Case& c, const Topology& t, const char* broken) {
    const auto trainer = staged(c, t).trainer();
    if (broken != nullptr) {
      std::vector<float> values(kWidth, 1);
      values[5] = std::numeric_limits<float>::infinity();
      trainer->model().set(trainer->model().parameter_named(broken), plain_view("", DType::f32, {kWidth}, values.data()));
    }
    const std::string before = trainer->state_digest();
    const Error error = error_of([&] { trainer->step(); });
    EXPECT_EQ(error.code(), Code::not_finite) << error.message();
    EXPECT_EQ(trainer->state_digest(), before);
    return error;
  };
  const Case of_weights{.name = "", .keys = {{"find_nan", "true"}}};
  const Case of_gradients{.name = "", .keys = {{"precision", "\"fp16\""}, {"loss_scale", "1e9"}, {"find_nan", "true"}}};
  for (const char* broken : {"block.0.mlp_norm.gamma", "block.4.mlp_norm.gamma", static_cast<const char*>(nullptr)}) {
    const Case& c = broken != nullptr ? of_weights : of_gradients;
    const Error alone = found(c, {}, broken);
    for (const Topology& t : kSearched) {
      const Error error = found(c, t, broken);
      std::string message = error.message();
      const std::string rank = text(", rank ", error.place.rank);
      ASSERT_NE(message.find(rank), std::string::npos) << message;
      EXPECT_EQ(message.erase(message.find(rank), rank.size()), alone.message()) << text_of(t);
      EXPECT_EQ(error.place.op, alone.place.op);
      EXPECT_EQ(error.place.tensor, alone.place.tensor);
      EXPECT_EQ(error.place.step, alone.place.step);
      if (t.stages == 3) {  // its block.4 is on the last one, which computes the loss
        EXPECT_EQ(error.place.rank, broken == nullptr || broken[6] == '4' ? 2 : 0) << message;
      }
    }
  }
}

TEST(PipelineStages, FindNoNanInAFiniteRunAndGoOnAfterOne) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}, {"find_nan", "true"}}};
  const Outcome whole = outcome_of(*staged(c, {}).trainer());
  for (const Topology& t : kSearched) {
    const auto trainer = staged(c, t).trainer();
    const SlotId gamma = trainer->model().parameter_named("block.3.mlp_norm.gamma");
    std::vector<float> kept(kWidth), broken(kWidth, std::numeric_limits<float>::infinity());
    trainer->model().get(gamma, plain_view("", DType::f32, {kWidth}, kept.data()));
    trainer->model().set(gamma, plain_view("", DType::f32, {kWidth}, broken.data()));
    EXPECT_EQ(error_of([&] { trainer->step(); }).code(), Code::not_finite);
    trainer->model().set(gamma, plain_view("", DType::f32, {kWidth}, kept.data()));
    EXPECT_EQ(outcome_of(*trainer), whole) << text_of(t);
  }
}

/// The first micro-batch's norm is made of all stages' sums; a GPT's tied weight has a use on the first and one on the last stage, and
/// under zb-v in two chunks of one.
TEST(PipelineStages, MeasureTheGradientNoiseScaleOfOneRank) {
  const auto scales = [](const Case& c, const Topology& t) {
    const auto trainer = staged(c, t).trainer(false);
    const TokenRows rows(16, kTokens, kVocabulary);
    std::vector<uint64_t> bits;
    for (const int64_t given : {16, 13, 3, 1, 16})
      bits.push_back(std::bit_cast<uint64_t>(trainer->step(rows.first(given)).gradient_noise_scale));
    EXPECT_GT(std::bit_cast<double>(bits.front()), 0) << text_of(t);
    return std::pair(bits, trainer->state_digest());
  };
  for (const auto& keys : std::vector<std::vector<std::pair<std::string, std::string>>>{
           {}, {{"precision", "\"bf16\""}, {"gradient_dtype", "\"bf16\""}, {"bucket", "4096"}}, {{"recompute", "\"full\""}}}) {
    if (kSanitized && !keys.empty()) continue;
    Case c{.name = "", .keys = keys};
    c.keys.emplace_back("gradient_noise_scale", "true");
    const auto alone = scales(c, {});
    for (const Topology& t : kSearched) EXPECT_EQ(scales(c, t), alone) << text_of(t);
    EXPECT_EQ(scales(c, {.stages = 3, .data = 3, .zero = 1, .schedule = "zb-h1"}), alone);
  }
}

/// A stage in the middle of a GPT reads neither tokens nor targets.
TEST(PipelineStages, TakeNoRowsIfTheyReadNone) {
  constexpr int kStepsHere = 3, kPerStep = 8, kAhead = 4;  // micro-batches; ahead: at most
  const Training training = staged({.name = "", .keys = {}, .micro_batches = kPerStep}, {.stages = 4});
  std::atomic<int> fills = 0;
  const auto trainer = trainer_of(training, [&] { ++fills; });
  for (int i = 0; i < kStepsHere; ++i) trainer->step();
  EXPECT_LE(fills, 2 * (kStepsHere * kPerStep + kAhead)) << "of the first and the last stage";
}

TEST(PipelineStages, ThatAreCancelledAreUndoneOnAll) {
  const Training training = staged({.name = "", .keys = {}}, {.stages = 3});
  const Outcome whole = outcome_of(*training.trainer());
  const auto trainer = training.trainer();
  trainer->cancel();
  EXPECT_TRUE(is_error(error_of([&] { trainer->step(); }), Code::cancelled));
  EXPECT_EQ(outcome_of(*trainer), whole);
}

TEST(PipelineStages, SeeWhatTheHostChangesBetweenStepsAndEvaluate) {
  const auto outcome = [](const Topology& t) {
    const auto trainer = staged({.name = "", .keys = {{"precision", "\"bf16\""}}}, t).trainer();
    trainer->step();
    for (const char* name : {"block.0.attention.projection.bias", "token_embedding.weight", "block.5.mlp.expand.weight"}) {
      const SlotId id = trainer->model().parameter_named(name);
      const Shape& shape = trainer->model().slot(id).type.shape;
      std::vector<float> values(static_cast<size_t>(shape.elements()), 0.03F);
      trainer->model().set(id, plain_view("", DType::f32, shape, values.data()));
    }
    Outcome told = outcome_of(*trainer, 2);
    told.told.push_back(std::bit_cast<uint64_t>(trainer->evaluate(std::make_shared<Sequences>(5, 7, 70)).loss));
    return told;
  };
  const Outcome alone = outcome({});
  for (const Topology& t :
       {Topology{.stages = 2}, Topology{.stages = 2, .data = 2, .zero = 2}, Topology{.stages = 3, .data = 2, .zero = 3}})
    EXPECT_EQ(outcome(t), alone) << text_of(t);
}

TEST(PipelineStages, RefuseWhatTheyCannotDo) {
  const auto refused = [](const Topology& t, std::vector<std::pair<std::string, std::string>> keys) {
    return error_of([&] { staged({.name = "", .keys = std::move(keys)}, t).trainer(); });
  };
  Training small = staged({.name = "", .keys = {{"recompute", "\"auto\""}, {"recompute_budget", "1000"}}}, {.stages = 2});
  small.options.layers = 1;
  const Error error = error_of([&] { small.trainer(); });
  ASSERT_TRUE(is_error(error, Code::out_of_memory, {"recompute: auto cannot fit 1000 B", "; the smallest is "}));
  const size_t number = error.message().find('(', error.message().find("; the smallest is "));
  small.recipe.recompute_budget = std::stoll(error.message().substr(number + 1));
  EXPECT_NO_THROW(small.trainer()) << error.message();
  EXPECT_TRUE(is_error(refused({.stages = 9}, {}), Code::invalid_argument, {"8 outermost scopes", "too few for 9 parts"}));
  EXPECT_TRUE(
      is_error(refused({.stages = 2, .schedule = "interleaved"}, {{"stage_chunks", "1"}}), Code::invalid_argument, {"interleaved"}));
  EXPECT_TRUE(is_error(refused({.stages = 2, .schedule = "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1"}, {}), Code::invalid_argument,
                       {"stage 0 waits in 0B0 for 1B0 of stage 1; stage 1 waits in 1F1 for 0F1 of stage 0"}));
  EXPECT_TRUE(is_error(refused({.stages = 2, .schedule = "0F0,0B0\n1F0,1B0"}, {}), Code::invalid_argument,
                       {"a table of 2 stages and 1 micro-batches; the recipe has 2 stages and 8 micro-batches"}));
  Training odd = staged({.name = "", .keys = {}}, {.stages = 2});
  odd.recipe.ranks = 5;
  EXPECT_TRUE(is_error(error_of([&] { odd.trainer(); }), Code::invalid_argument, {"5 ranks are not a multiple of 2 stages", "2 x 2 = 4"}));
}

}  // namespace
}  // namespace st

// A host's own loss by forward, backward and apply on the stages of a group: the outputs are on the ranks of the last part's stage, and all
// results are bitwise those of one rank that runs all micro-batches in order.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host_loss_calls.h"
#include "rank_group.h"
#include "rank_training.h"
#include "staged_training.h"
#include "thrown_error.h"

namespace st {
namespace {

/// The same steps on each topology, by a trainer of a model that `make` makes, or of the training's.
void expect_one_outcome(const Case& c, By by, std::initializer_list<Topology> topologies,
                        const std::function<std::shared_ptr<Model>(const Training&)>& make = &Training::model) {
  const Training one = staged(c, {});
  const Outcome alone = outcome_of_calls(*one.trainer_of(make(one), nullptr), kPairs, by);
  expect_skips_and_updates(c, alone);
  for (const Topology& t : topologies)
    each_of_group(static_cast<int>(t.stages * t.data), [&](int rank, Communicator& own) {
      const Training training = staged(c, t);
      const auto trainer = in_group(training, own, make(training));
      EXPECT_EQ(outcome_of_calls(*trainer, kPairs, by, rank % t.data, t.data), alone) << c.name << ", " << text_of(t) << ", rank " << rank;
    });
}

TEST(HostLossOnStages, HasTheBitsOfOneRank) {
  for (const By by : {By::host, By::graph})
    expect_one_outcome({.name = "", .keys = {}}, by,
                       {{.stages = 2},
                        {.stages = 3, .schedule = "zb-v"},
                        {.stages = 2, .data = 2, .zero = 1, .schedule = "interleaved"},
                        {.stages = 2, .data = 3, .zero = 2, .schedule = "zb-h1"},
                        {.stages = 2, .data = 2, .zero = 3, .schedule = "gpipe"}});
}

TEST(HostLossOnStages, HasTheBitsOfOneRankByRecipe) {
  const std::initializer_list<Topology> few = {{.stages = 2, .data = 2, .schedule = "zb-v"}, {.stages = 2, .data = 2, .zero = 3}};
  expect_one_outcome({.name = "fp16", .keys = skipping_fp16()}, By::graph, few);
  expect_one_outcome({.name = "bf16",
                      .keys = {{"precision", "\"bf16\""}, {"residual_dtype", "\"bf16\""}, {"clip", "0.1"}, {"gradient_dtype", "\"bf16\""}}},
                     By::host, few);
  expect_one_outcome({.name = "dropout", .keys = {{"dropout", "0.2"}, {"recompute", "\"full\""}}}, By::host, few);
  expect_one_outcome({.name = "average", .keys = {{"ema_decay", "0.9"}, {"optimizer", "\"muon\""}}}, By::host, few);
}

/// The state depends on the number of data ranks, not on the stages.
TEST(HostLossOnStages, OnceAStepHasTheBitsOfItsDataRanks) {
  const Case c{.name = "", .keys = {{"reduce", "\"step\""}}};
  const auto outcome = [&](const Topology& t) {
    Outcome first;
    each_of_group(static_cast<int>(t.stages * 2), [&](int rank, Communicator& own) {
      const Outcome made = outcome_of_calls(*in_group(staged(c, t), own), kPairs, By::graph, rank % 2, 2);
      if (rank == 0) first = made;
    });
    return first;
  };
  const Outcome whole = outcome({.data = 2});
  EXPECT_EQ(outcome({.stages = 2, .data = 2}), whole);
  EXPECT_EQ(outcome({.stages = 2, .data = 2, .zero = 3, .schedule = "zb-v"}), whole);
}

std::shared_ptr<Model> without_a_loss(const Training& training) {
  Program program = build_gpt(training.options);
  program.loss_sum = program.loss_count = {};
  return std::make_shared<Model>(training.context(), std::move(program), 1);
}

TEST(HostLossOnStages, TrainsAGraphWithoutALoss) {
  expect_one_outcome({.name = "", .keys = {}}, By::host,
                     {{.stages = 3, .schedule = "zb-v"}, {.stages = 2, .data = 2, .zero = 2}, {.stages = 2, .data = 2, .zero = 3}},
                     without_a_loss);
}

/// Outputs that earlier parts compute are sent to the last part's stage, and their gradients back; one value has two names.
TEST(HostLossOnStages, TakesGradientsOfOutputsOfAllParts) {
  const auto make = [](const Training& training) {
    Program program = build_gpt(training.options);
    const Graph& graph = program.sections[0].graph;
    int32_t norms = 0;
    for (int32_t n = 0; n < graph.size(); ++n)
      if (graph[n].op == Op::layer_norm && ++norms % 4 == 1) program.outputs.push_back({text("norm.", norms), {n, 0}});
    program.outputs.push_back({"again", program.outputs[1].value});
    return std::make_shared<Model>(training.context(), std::move(program), 1);
  };
  for (const By by : {By::host, By::graph})
    expect_one_outcome({.name = "", .keys = {}}, by,
                       {{.stages = 2}, {.stages = 3, .schedule = "zb-v"}, {.stages = 2, .data = 2, .zero = 3, .schedule = "interleaved"}},
                       make);
}

TEST(HostLossOnStages, ShowsOutputsOnTheStageOfTheLastPart) {
  for (const char* schedule : {"1f1b", "zb-v"})
    each_of_group(4, [&](int rank, Communicator& own) {
      const auto trainer = in_group(staged({.name = "", .keys = {}}, {.stages = 2, .data = 2, .schedule = schedule}), own);
      const TokenRows rows(2, kTokens, kVocabulary);
      const bool has_them = rank / 2 == (schedule == std::string("zb-v") ? 0 : 1);
      EXPECT_EQ(trainer->forward(rows.first(2)).size(), has_them ? 1 : 0) << schedule << ", rank " << rank;
    });
}

/// Steps of all three kinds in turn, which share moments; each kind has links of its own.
TEST(HostLossOnStages, GoesOnFromStepsOfOtherKinds) {
  const Case four{.name = "", .keys = {}, .micro_batches = 4};
  const TokenRows rows(16, kTokens, kVocabulary);
  const auto steps_of = [&](Trainer& trainer, int64_t rank, int64_t size) {
    for (int step = 0; step < 6; ++step) {
      if (step % 3 == 0) {
        trainer.step();
        continue;
      }
      for (int64_t k = rank; k < 4; k += size) run_pair_on(trainer, k, step % 3 == 1 ? By::host : By::graph);
      trainer.apply();
      EXPECT_TRUE(trainer.pipeline_times().lanes.empty()) << "only the graph's own steps are recorded";
    }
    return trainer.state_digest();
  };
  const std::string expected = steps_of(*staged(four, {}).trainer(), 0, 1);
  for (const int64_t zero : {0, 3})
    each_of_group(4, [&](int rank, Communicator& own) {
      const Training training = staged(four, {.stages = 2, .data = 2, .zero = zero});
      EXPECT_EQ(steps_of(*in_group(training, own, nullptr, training.data()), rank % 2, 2), expected) << "zero " << zero;
    });
}

TEST(HostLossOnStages, RefusesOtherCallsAndLossesOnOneStageOnAll) {
  each_of_group(3, [&](int rank, Communicator& own) {
    const auto trainer = in_group(staged({.name = "", .keys = {}}, {.stages = 3}), own);
    const std::string before = trainer->state_digest();
    const Error losses = error_of([&] { run_pair_on(*trainer, 0, rank == 1 ? By::graph : By::host); });
    EXPECT_TRUE(is_error(losses, Code::rank_mismatch, {"rank 1", "gives inputs for the graph's own loss, rank 2 the outputs' gradients"}));
    run_pair_on(*trainer, 0, By::host);
    const Error calls = error_of([&] { rank == 0 ? static_cast<void>(trainer->apply()) : run_pair_on(*trainer, 0, By::host); });
    EXPECT_TRUE(is_error(calls, Code::rank_mismatch, {"rank 0", "calls apply, rank 2 forward"}));
    EXPECT_EQ(trainer->state_digest(), before);
    run_pair_on(*trainer, 0, By::host);
    trainer->apply();
    EXPECT_NE(trainer->state_digest(), before);
  });
}

TEST(HostLossOnStages, TakesNoGradientsOnOtherStages) {
  each_of_group(2, [&](int rank, Communicator& own) {
    const auto trainer = in_group(staged({.name = "", .keys = {}}, {.stages = 2}), own);
    const TokenRows rows(2, kTokens, kVocabulary);
    std::vector<float> gradient(2 * kTokens * kVocabulary);
    const HostView by = plain_view("logits", DType::f32, {2, kTokens, kVocabulary}, gradient.data());
    const Error error = error_of([&] {
      try {
        trainer->forward(rows.first(2));
        trainer->backward(std::span(&by, 1));
      } catch (const std::exception& why) {
        own.abort(why.what());  // as its caller must
        throw;
      }
    });
    EXPECT_TRUE(is_error(error, rank == 0 ? Code::invalid_argument : Code::rank_failed, {"the last part's stage"}));
  });
}

}  // namespace
}  // namespace st

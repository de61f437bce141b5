// A host's own loss by forward, backward and apply on the tensor ranks of a group: each has whole outputs and gives the same gradients;
// results are those of one rank within rounding, and bitwise alike at each degree.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host_loss_calls.h"
#include "models/mlp.h"
#include "rank_group.h"
#include "split_training.h"
#include "thrown_error.h"

namespace st {
namespace {

using Make = std::function<std::shared_ptr<Model>(const Training&)>;

Outcome outcome_on(const Case& c, const Degrees& d, By by, const Make& make = &Training::model) {
  Outcome first;
  each_of_group(static_cast<int>(d.ranks()), [&](int rank, Communicator& own) {
    const Training training = split(c, d);
    const auto trainer = in_group(training, own, make(training));
    const Outcome made = outcome_of_calls(*trainer, kPairs, by, rank / d.tensor % d.data, d.data);
    if (rank == 0) first = made;
  });
  return first;
}

TEST(HostLossOnTensorRanks, HasOneStateAtEachDegree) {
  const Case plain{.name = "", .keys = {}};
  for (const By by : {By::host, By::graph}) {
    const Outcome first = outcome_on(plain, {.tensor = 2}, by);
    for (const Degrees& d : {Degrees{.tensor = 2, .data = 2, .zero = 1}, Degrees{.tensor = 2, .data = 2, .zero = 3},
                             Degrees{.tensor = 2, .stages = 2}, Degrees{.tensor = 2, .data = 2, .zero = 2, .stages = 2}})
      EXPECT_EQ(outcome_on(plain, d, by), first) << text_of(d);
  }
}

/// Norms of the four steps' gradients, which are far from those of other weights.
std::vector<double> norms_in(const Outcome& outcome) {
  std::vector<double> norms;
  for (size_t step = 0; step < kSteps; ++step)
    norms.push_back(std::bit_cast<double>(outcome.told[step * outcome.told.size() / kSteps + 1]));
  return norms;
}

TEST(HostLossOnTensorRanks, IsThatOfOneRankWithinRounding) {
  const Case plain{.name = "", .keys = {}};
  for (const By by : {By::host, By::graph}) {
    const std::vector<double> alone = norms_in(outcome_of_calls(*split(plain, {}).trainer(false), kPairs, by));
    for (const int64_t tensor : {2, 4}) {
      const std::vector<double> shared = norms_in(outcome_on(plain, {.tensor = tensor}, by));
      for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(shared[i], alone[i], 1e-3 * alone[i]) << tensor << " ranks, step " << i;
    }
  }
}

TEST(HostLossOnTensorRanks, HasOneStateByRecipe) {
  for (const Case& c :
       {Case{.name = "fp16", .keys = skipping_fp16()}, Case{.name = "bf16", .keys = {{"precision", "\"bf16\""}, {"clip", "0.1"}}},
        Case{.name = "dropout", .keys = {{"dropout", "0.2"}, {"recompute", "\"full\""}, {"ema_decay", "0.9"}}}}) {
    const Outcome first = outcome_on(c, {.tensor = 2}, By::graph);
    expect_skips_and_updates(c, first);
    EXPECT_EQ(outcome_on(c, {.tensor = 2, .data = 2, .zero = 2, .stages = 2}, By::graph), first) << c.name;
  }
}

/// Outputs that lie in rows or columns, of a graph with a loss or without.
TEST(HostLossOnTensorRanks, TakesGradientsOfOutputsOfAllKinds) {
  for (const bool has_loss : {true, false}) {
    const auto make = [has_loss](const Training& training) {
      Program program = build_gpt(training.options);
      const Graph& graph = program.sections[0].graph;
      int32_t norms = 0, activations = 0;
      for (int32_t n = 0; n < graph.size(); ++n) {
        if (graph[n].op == Op::layer_norm && ++norms % 3 == 1) program.outputs.push_back({text("norm.", norms), {n, 0}});
        if (graph[n].op == Op::gelu && ++activations == 2) program.outputs.push_back({"activation", {n, 0}});
      }
      if (!has_loss) program.loss_sum = program.loss_count = {};
      return std::make_shared<Model>(training.context(), std::move(program), 1);
    };
    const Case plain{.name = "", .keys = {}};
    const std::vector<double> alone =
        norms_in(outcome_of_calls(*split(plain, {}).trainer_of(make(split(plain, {})), nullptr), kPairs, By::host));
    const Outcome first = outcome_on(plain, {.tensor = 2}, By::host, make);
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(norms_in(first)[i], alone[i], 1e-3 * alone[i]) << "step " << i;
    EXPECT_EQ(outcome_on(plain, {.tensor = 2, .data = 2, .zero = 3, .stages = 2}, By::host, make), first);
  }
}

/// Its last product is split only where the graph's own loss does not read the whole columns: both kinds of steps have the same parts.
TEST(HostLossOnTensorRanks, OfAnMlpHasThePartsOfItsOwnSteps) {
  const Training training = split({.name = "", .keys = {}, .micro_batches = 1}, {.tensor = 2});
  const std::vector<float> x(8, 0.5F), y(4, 0.25F);
  const auto steps_of = [&](Trainer& trainer) {
    const std::vector<HostView> batch = {plain_view("x", DType::f32, {2, 4}, x.data()), plain_view("y", DType::f32, {2, 2}, y.data())};
    std::vector<double> norms;
    for (int step = 0; step < 3; ++step) {
      const auto outputs = trainer.forward(std::span(batch).first(1));
      const auto* prediction = static_cast<const float*>(outputs[0].data);
      const std::vector<float> given(prediction, prediction + 4);
      std::vector<float> gradient(4);
      const HostView room = plain_view("prediction", DType::f32, {2, 2}, gradient.data());
      trainer.forward_into(std::span(batch).first(1), {&room, 1});
      EXPECT_EQ(gradient, given);
      trainer.backward({&room, 1});
      norms.push_back(trainer.apply().grad_norm);
      norms.push_back(trainer.step(batch).grad_norm);
    }
    return norms;
  };
  const auto make = [&] {
    return std::make_shared<Model>(training.context(), build_mlp({.inputs = 4, .hidden = {8, 6}, .outputs = 2}), 1);
  };
  const std::vector<double> alone = steps_of(*split({.name = "", .keys = {}, .micro_batches = 1}, {}).trainer_of(make(), nullptr));
  each_of_group(2, [&](int, Communicator& own) {
    const std::vector<double> shared = steps_of(*in_group(training, own, make()));
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(shared[i], alone[i], 1e-3 * alone[i]) << i;
  });
}

TEST(HostLossOnTensorRanks, WithOtherGradientsOnOneIsRefusedOnAll) {
  each_of_group(4, [&](int rank, Communicator& own) {
    const auto trainer = in_group(split({.name = "", .keys = {}}, {.tensor = 2, .data = 2}), own);
    const std::string before = trainer->state_digest();
    const Error error = error_of([&] { run_pair_on(*trainer, rank / 2, By::host, rank == 3 ? 0.02F : 0.01F); });
    EXPECT_TRUE(is_error(error, Code::rank_mismatch, {"rank 3", "gives other gradients than rank 2"}));
    EXPECT_EQ(trainer->state_digest(), before);
    run_pair_on(*trainer, rank / 2, By::host);
    trainer->apply();
    EXPECT_NE(trainer->state_digest(), before);
  });
}

}  // namespace
}  // namespace st

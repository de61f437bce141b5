// A loss that the host computes by an op of its own (HostOp) on ranks: the last stage calls it for each micro-batch between forward and
// backward, and all results are bitwise those of one rank.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/counted_loss.h"
#include "ir/host_op.h"
#include "rank_group.h"
#include "rank_training.h"
#include "split_training.h"
#include "staged_training.h"
#include "thrown_error.h"

namespace st {
namespace {

/// Half the squared distance of each token's logits from its target's corner.
struct DistanceOp {
  std::function<int32_t()> forward = [] { return 0; }, backward = [] { return 0; };  // called first

  HostOp op() const {
    return {.name = "distance",
            .outputs = 1,
            .shape =
                [](std::span<const HostType> in, std::span<HostType> out) {
                  out[0] = in[1];
                  out[0].dtype = static_cast<int32_t>(DType::f32);
                  return 0;
                },
            .forward =
                [*this](std::span<const OpView> in, std::span<const OpView> out) {
                  if (const int32_t refusal = forward(); refusal != 0) return refusal;
                  const auto* logits = static_cast<const float*>(in[0].data);
                  const auto* targets = static_cast<const int32_t*>(in[1].data);
                  auto* loss = static_cast<float*>(out[0].data);
                  for (int64_t token = 0; token < out[0].bytes / 4; ++token) {
                    float sum = 0;
                    for (int32_t v = 0; v < kVocabulary; ++v) {
                      const float distance = logits[token * kVocabulary + v] - (v == targets[token] ? 1.0F : 0.0F);
                      sum += distance * distance;
                    }
                    loss[token] = 0.5F * sum;
                  }
                  return 0;
                },
            .backward =
                [*this](std::span<const OpView> in, std::span<const OpView>, std::span<const OpView> d_out, std::span<const OpView> d_in) {
                  if (const int32_t refusal = backward(); refusal != 0) return refusal;
                  const auto* logits = static_cast<const float*>(in[0].data);
                  const auto* targets = static_cast<const int32_t*>(in[1].data);
                  const auto* d_loss = static_cast<const float*>(d_out[0].data);
                  auto* d_logits = static_cast<float*>(d_in[0].data);
                  for (int64_t token = 0; token < d_out[0].bytes / 4; ++token)
                    for (int32_t v = 0; v < kVocabulary; ++v) {
                      const int64_t i = token * kVocabulary + v;
                      d_logits[i] = (logits[i] - (v == targets[token] ? 1.0F : 0.0F)) * d_loss[token];
                    }
                  return 0;
                }};
  }
};

/// The training's GPT with that loss in place of its own.
std::shared_ptr<Model> with_host_loss(const Training& training, const DistanceOp& distance = {}) {
  const auto context = training.context();
  context->host_ops().add(distance.op());
  Program program = build_gpt(training.options);
  EXPECT_EQ(program.sections[0].graph.nodes.back().op, Op::cross_entropy);
  program.sections[0].graph.nodes.pop_back();
  Builder b(program, 0);
  const Value targets = b.load(program.slot_named("targets"));
  const Value distances = b(Op::host, {program.outputs.front().value, targets}, *context->host_ops().attrs_of("distance"));
  const CountedLoss loss = counted_loss(b, b(Op::mean, {distances}, {{"axes", Ints{}}}));
  program.loss_sum = loss.sum;
  program.loss_count = loss.count;
  return std::make_shared<Model>(context, std::move(program), 1);
}

std::unique_ptr<Trainer> on_threads(const Training& training, const DistanceOp& distance = {}, bool with_data = true) {
  return training.trainer_of(with_host_loss(training, distance), with_data ? training.data() : nullptr);
}

std::unique_ptr<Trainer> of_group(const Training& training, Communicator& own, const DistanceOp& distance = {}, bool with_data = true) {
  return in_group(training, own, with_host_loss(training, distance), with_data ? training.data() : nullptr);
}

const Case kSeven{.name = "", .keys = {}, .micro_batches = 7};  // the last round of two or three data ranks is not whole

TEST(HostOpLoss, HasTheBitsOfOneRankOnStages) {
  const Outcome alone = outcome_of(*on_threads(staged(kSeven, {})));
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}) {
    const Topology t{.stages = 2, .schedule = schedule};
    EXPECT_EQ(outcome_of(*on_threads(staged(kSeven, t))), alone) << text_of(t);
  }
  for (const Topology& t :
       {Topology{.stages = 3, .data = 2}, Topology{.stages = 2, .data = 2, .zero = 1, .schedule = "interleaved"},
        Topology{.stages = 2, .data = 2, .zero = 2, .schedule = "zb-v"}, Topology{.stages = 2, .data = 3, .zero = 3, .schedule = "zb-h1"}})
    EXPECT_EQ(outcome_of(*on_threads(staged(kSeven, t))), alone) << text_of(t);
}

TEST(HostOpLoss, HasTheBitsOfOneRankOnStagesOfAGroup) {
  const Outcome alone = outcome_of(*on_threads(staged(kSeven, {})));
  for (const Topology& t : {Topology{.stages = 3}, Topology{.stages = 2, .data = 2, .schedule = "gpipe"},
                            Topology{.stages = 2, .data = 2, .zero = 2, .schedule = "zb-v"},
                            Topology{.stages = 2, .data = 2, .zero = 3, .schedule = "interleaved"}})
    each_of_group(static_cast<int>(t.stages * t.data), [&](int rank, Communicator& own) {
      EXPECT_EQ(outcome_of(*of_group(staged(kSeven, t), own)), alone) << text_of(t) << ", rank " << rank;
    });
}

TEST(HostOpLoss, HasTheBitsOfOneRankByRecipe) {
  for (const Case& c : {Case{.name = "fp16", .keys = skipping_fp16()},
                        Case{.name = "bf16", .keys = {{"precision", "\"bf16\""}, {"clip", "0.1"}, {"recompute", "\"full\""}}},
                        Case{.name = "ragged", .keys = {{"find_nan", "true"}, {"dropout", "0.1"}}}}) {
    const auto outcome = [&](Trainer& trainer) {
      Outcome made = outcome_of_rows(trainer, {16, 11, 5});  // short micro-batches, data ranks without rows
      for (const int64_t rows : {16, 3}) add(made, trainer.step(TokenRows(rows, kTokens, kVocabulary).first(rows)));
      made.state = trainer.state_digest();
      return made;
    };
    const Outcome alone = outcome(*on_threads(staged(c, {}), {}, false));
    expect_skips_and_updates(c, alone);
    for (const Topology& t : {Topology{.stages = 3}, Topology{.stages = 2, .data = 2, .zero = 2, .schedule = "zb-v"}})
      EXPECT_EQ(outcome(*on_threads(staged(c, t), {}, false)), alone) << c.name << ", " << text_of(t);
  }
}

/// The order of the calls, as letters.
class Calls {
 public:
  DistanceOp op() {
    return {.forward = [this] { return add('F'); }, .backward = [this] { return add('B'); }};
  }
  std::string made() const { return made_; }

 private:
  int32_t add(char letter) {
    made_ += letter;
    return 0;
  }
  std::string made_;
};

/// With zb-v the last part is on stage 0.
TEST(HostOpLoss, IsComputedOnTheStageOfTheLastPartBetweenForwardAndBackward) {
  const Case four{.name = "", .keys = {}, .micro_batches = 4};
  struct Expected {
    const char *schedule, *calls;
    int rank;
  };
  for (const auto& [schedule, calls, last] :
       {Expected{"1f1b", "FBFBFBFB", 1}, Expected{"gpipe", "FFFFBBBB", 1}, Expected{"zb-v", "FBFBFBFB", 0}}) {
    const Training training = staged(four, {.stages = 2, .schedule = schedule});
    const std::string expected = calls;
    const int rank_of_loss = last;
    each_of_group(2, [&](int rank, Communicator& own) {
      Calls seen;
      of_group(training, own, seen.op())->step();
      EXPECT_EQ(seen.made(), rank == rank_of_loss ? expected : "") << training.recipe.schedule << ", rank " << rank;
    });
  }
}

/// Fails in its `at`-th call, once.
DistanceOp failing(std::atomic<int>& calls, int at) {
  const auto call = [&calls, at] { return calls.fetch_add(1) == at ? 77 : 0; };
  return {.forward = call, .backward = call};
}

TEST(HostOpLoss, ThatFailsEndsTheStepOnAllThreadsAndTheNextOneIsWhole) {
  for (const char* schedule : {"1f1b", "zb-v"}) {
    const Training training = staged({.name = "", .keys = {}}, {.stages = 2, .data = 2, .schedule = schedule});
    const Outcome whole = outcome_of(*on_threads(training));
    for (const int at : {5, 20}) {
      std::atomic<int> calls = 0;
      const Outcome outcome = outcome_with_a_failure(*on_threads(training, failing(calls, at)), [](const Error& error) {
        EXPECT_TRUE(is_error(error, Code::callback, {"callback of \"distance\" returned 77"}));
      });
      EXPECT_EQ(outcome, whole) << schedule << ", call " << at;
    }
  }
}

TEST(HostOpLoss, ThatFailsInAGroupIsNamedOnAllRanks) {
  std::atomic<int> named = 0;
  each_of_group(4, [&](int rank, Communicator& own) {
    std::atomic<int> calls = 0;
    const auto trainer = of_group(staged({.name = "", .keys = {}}, {.stages = 2, .data = 2}), own, failing(calls, rank == 3 ? 3 : -1));
    const Error error = error_of([&] {
      try {
        trainer->step();
      } catch (const std::exception& why) {
        own.abort(why.what());  // as its caller must
        throw;
      }
    });
    EXPECT_EQ(error.code(), rank == 3 ? Code::callback : Code::rank_failed);
    named += error.message().find("callback of \"distance\" returned 77") != std::string::npos ? 1 : 0;
  });
  EXPECT_EQ(named, 4);
}

TEST(HostOpLoss, OfOneRankAloneIsRefusedOnAll) {
  each_of_group(2, [&](int rank, Communicator& own) {
    const Training training = staged(kSeven, {.stages = 2});
    const Error error = error_of([&] { rank == 0 ? in_group(training, own) : of_group(training, own, {}, false); });
    EXPECT_TRUE(is_error(error, Code::rank_mismatch, {"rank 1"}));
  });
}

/// Where ranks are threads, the calls forward, backward and apply name the op in their place.
TEST(HostOpLoss, IsTheWayOutWhereTheHostsCallsAreRefused) {
  for (const Training& training : {staged(kSeven, {.stages = 2}), split(kSeven, {.tensor = 2})}) {
    Program program = build_gpt(training.options);
    program.loss_sum = program.loss_count = {};
    const auto model = std::make_shared<Model>(training.context(), std::move(program), 1);
    EXPECT_TRUE(is_error(error_of([&] { training.trainer_of(model, nullptr); }), Code::unsupported, {"2 ranks", "st_op_register"}));
  }
}

/// Each tensor rank computes it, from whole logits.
TEST(HostOpLoss, HasOneStateAtATensorDegree) {
  const std::vector<double> alone = losses_of(*on_threads(split(kSeven, {})), kSteps);
  const Outcome first = outcome_of(*on_threads(split(kSeven, {.tensor = 2})));
  const std::vector<double> shared = losses_of(*on_threads(split(kSeven, {.tensor = 2})), kSteps);
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(shared[i], alone[i], 1e-5 * alone[i]);
  const Degrees in_stages{.tensor = 2, .data = 2, .zero = 1, .stages = 2};
  EXPECT_EQ(outcome_of(*on_threads(split(kSeven, in_stages))), first);
  each_of_group(4, [&](int rank, Communicator& own) {
    EXPECT_EQ(outcome_of(*of_group(split(kSeven, {.tensor = 2, .stages = 2}), own)), first) << "rank " << rank;
  });
}

}  // namespace
}  // namespace st

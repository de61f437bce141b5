// A host's own loss on the ranks of a group: with reduce micro, N ranks with G micro-batches each are bitwise equal to one rank with N G
// micro-batches in order; with reduce step, to the ranks' sums added in order.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "rank_group.h"
#include "rank_training.h"
#include "sanitized.h"
#include "saved_trainer.h"

namespace st {
namespace {

constexpr int64_t kBatchRows = 2;

/// Micro-batch k of a step, or `count` of them together; the same on every rank.
std::vector<HostView> micro_batch(int64_t k, int step, int64_t count = 1) {
  static const TokenRows all(64, kTokens, kVocabulary);
  return all.rows((step * 3 + k) * kBatchRows, count * kBatchRows);
}

enum class Loss { host, own };

/// Runs one micro-batch with the gradient of some loss of the outputs.
void pair(Trainer& trainer, int64_t k, int step, Loss loss) {
  const std::vector<HostView> batch = micro_batch(k, step);
  const auto outputs = trainer.forward(loss == Loss::own ? std::span(batch) : std::span(batch).first(1));
  if (loss == Loss::own) return trainer.backward_own_loss();
  std::vector<std::vector<float>> values;
  std::vector<HostView> gradients;
  for (const HostView& output : outputs) {
    if (output.dtype != DType::f32) continue;
    const auto* from = static_cast<const float*>(output.data);
    std::vector<float>& to = values.emplace_back(static_cast<size_t>(output.shape.elements()));
    for (size_t i = 0; i < to.size(); ++i) to[i] = 0.01F * (from[i] - static_cast<float>(i % 5) * 0.1F);
    gradients.push_back(plain_view(output.name, DType::f32, output.shape, to.data()));
  }
  trainer.backward(gradients);
}

Training training_with(std::vector<std::pair<std::string, std::string>> keys, int64_t micro_batches = 1) {
  keys.emplace_back("warmup", "0");
  return training_of({.name = "", .keys = std::move(keys), .micro_batches = micro_batches}, 1);
}

/// Three steps of `pairs` micro-batches each, of which this rank runs every size-th, and the last gradient of a parameter with several
/// blocks. The loss is left out: the trainer does not know a host's loss, and NaN cannot be compared.
Outcome outcome_of_pairs(Trainer& trainer, int64_t pairs, Loss loss, int rank = 0, int size = 1) {
  Outcome outcome;
  for (int step = 0; step < 3; ++step) {
    for (int64_t k = rank; k < pairs; k += size) pair(trainer, k, step, loss);
    add(outcome, trainer.apply());
  }
  std::vector<float> values(kVocabulary * kWidth);
  trainer.gradient("token_embedding.weight", plain_view("", DType::f32, {kVocabulary, kWidth}, values.data()));
  for (const float value : values) outcome.told.push_back(std::bit_cast<uint32_t>(value));
  for (uint64_t& bits : outcome.told)
    if (std::isnan(std::bit_cast<double>(bits))) bits = 0;
  outcome.state = trainer.state_digest();
  return outcome;
}

Outcome alone(const Training& training, int64_t pairs, Loss loss) { return outcome_of_pairs(*training.trainer(false), pairs, loss); }

struct Keys {
  const char* name;
  std::vector<std::pair<std::string, std::string>> keys;
};

class HostLossInGroup : public testing::TestWithParam<Keys> {};

TEST_P(HostLossInGroup, IsOneRankWithAllPairsInOrder) {
  struct Shape {
    int size;
    int64_t rounds, zero;
  };
  for (const Loss loss : {Loss::host, Loss::own})
    for (const auto& [size, rounds, zero] : {Shape{2, 3, 0}, Shape{2, 3, 1}, Shape{3, 1, 0}, Shape{3, 2, 2}, Shape{3, 2, 3}}) {
      if (kSanitized && zero < 3 && (zero == 0) != (loss == Loss::own)) continue;
      Training training = training_with(GetParam().keys, size * rounds);
      training.recipe.zero = zero;
      const Outcome expected = alone(training, size * rounds, loss);
      const int ranks = size;
      const int64_t pairs = size * rounds;
      each_of_group(size, [&](int rank, Communicator& own) {
        EXPECT_EQ(outcome_of_pairs(*in_group(training, own), pairs, loss, rank, ranks), expected)
            << ranks << " ranks, " << pairs << " pairs, zero " << training.recipe.zero << ", rank " << rank;
      });
    }
}

INSTANTIATE_TEST_SUITE_P(Recipes, HostLossInGroup,
                         testing::Values(Keys{"fp32", {{"overlap", "\"off\""}}},
                                         Keys{"bf16_small_buckets", {{"precision", "\"bf16\""}, {"bucket", "4096"}, {"overlap", "\"on\""}}},
                                         Keys{"fp16", {{"precision", "\"fp16\""}, {"loss_scale_initial", "1024"}}},
                                         Keys{"bf16_gradients", {{"gradient_dtype", "\"bf16\""}, {"bucket", "4096"}}},
                                         Keys{"dropout", {{"dropout", "0.2"}, {"recompute", "\"blocks\""}}},
                                         Keys{"average", {{"ema_decay", "0.9"}, {"optimizer", "\"muon\""}}}),
                         [](const testing::TestParamInfo<Keys>& its) { return its.param.name; });

TEST(HostLossInGroup, OfOneRankIsThatRank) {
  const Training training = training_with({}, 2);
  const Outcome expected = alone(training, 2, Loss::host);
  each_of_group(1, [&](int, Communicator& own) { EXPECT_EQ(outcome_of_pairs(*in_group(training, own), 2, Loss::host), expected); });
}

// With one micro-batch per rank no rank accumulates on its own; with more, each runs any number.
TEST(HostLossInGroup, OnceAStepAddsTheRanksSumsInOrder) {
  const Training training = training_with({{"reduce", "\"step\""}}, 2);
  for (const int size : {2, 3}) {
    const Outcome expected = alone(training, size, Loss::host);
    const int ranks = size;
    each_of_group(size, [&](int rank, Communicator& own) {
      EXPECT_EQ(outcome_of_pairs(*in_group(training, own), ranks, Loss::host, rank, ranks), expected) << ranks << " ranks, rank " << rank;
    });
  }
  each_of_group(3, [&](int rank, Communicator& own) {
    const auto trainer = in_group(training, own);
    for (int g = 0; g <= rank; ++g) pair(*trainer, g * 3 + rank, 0, Loss::own);
    const StepReport report = trainer->apply();
    EXPECT_EQ(report.tokens, 6 * kBatchRows * kTokens);
    const auto norm = std::bit_cast<int64_t>(report.grad_norm), loss = std::bit_cast<int64_t>(report.loss);
    std::vector<int64_t> all(3);
    for (const int64_t value : {norm, loss}) {
      own.all_gather(&value, all.data(), 3, DType::i64, "alike");
      EXPECT_EQ(all, std::vector<int64_t>(3, value));
    }
  });
}

TEST(HostLossInGroup, StepsOfBothKindsShareTheMoments) {
  Training training = training_with({}, 2);
  const auto steps_of = [](Trainer& trainer, int size, int rank) {
    for (int step = 0; step < 4; ++step) {
      if (step % 2 == 0) {
        trainer.step(size == 1 ? micro_batch(0, step, 2) : micro_batch(rank, step));
      } else {
        for (int64_t k = rank; k < 2; k += size) pair(trainer, k, step, Loss::host);
        trainer.apply();
      }
    }
    return trainer.state_digest();
  };
  const std::string expected = steps_of(*training.trainer(false), 1, 0);
  for (const int64_t zero : {0, 3}) {
    training.recipe.zero = zero;
    each_of_group(2, [&](int rank, Communicator& own) { EXPECT_EQ(steps_of(*in_group(training, own), 2, rank), expected); });
  }
}

// The gathers depend on the recomputed scopes, which all ranks take from rank 0.
TEST(HostLossInGroup, OfParametersInPiecesRecomputesTheSameOnAllRanks) {
  Training training = training_with({{"recompute", "\"auto\""}}, 2);
  training.recipe.recompute_budget = half_budget(training);
  const std::string expected = alone(training, 2, Loss::host).state;
  training.recipe.zero = 3;
  Training of_threads = training;
  of_threads.recipe.ranks = 2;
  training.recipe.recompute_budget = half_budget(of_threads);
  each_of_group(2, [&](int rank, Communicator& own) {
    const auto trainer = in_group(training, own);
    for (int step = 0; step < 3; ++step) {
      pair(*trainer, rank, step, Loss::host);
      trainer->apply();
    }
    EXPECT_FALSE(trainer->plan().recompute.scopes.empty());
    EXPECT_EQ(trainer->state_digest(), expected);
  });
}

std::string mismatch(const std::function<void()>& call) {
  const Error error = error_of(call);
  EXPECT_EQ(error.code(), Code::rank_mismatch) << error.message();
  return error.message();
}

TEST(HostLossInGroup, RanksThatDoNotTheSameAreToldOnAllAndMayTryAgain) {
  each_of_group(2, [&](int rank, Communicator& own) {
    const auto trainer = in_group(training_with({{"reduce", "\"step\""}}, 2), own);
    const std::string before = trainer->state_digest();
    const auto expect_refused = [&](const std::function<void()>& call, std::initializer_list<const char*> words) {
      const std::string message = mismatch(call);
      for (const char* word : words) EXPECT_NE(message.find(word), std::string::npos) << message;
      EXPECT_EQ(trainer->state_digest(), before);
    };
    pair(*trainer, rank, 0, rank == 0 ? Loss::host : Loss::own);
    expect_refused([&] { trainer->apply(); }, {"rank 1", "graph's own loss", "rank 0 the outputs' gradients"});
    if (rank == 1) trainer->set("lr", "0.5");
    pair(*trainer, rank, 0, Loss::host);
    expect_refused([&] { trainer->apply(); }, {"rank 1", "learning rate 0.5, rank 0 0.001"});
    trainer->set("lr", "0.25");
    pair(*trainer, rank, 0, Loss::host);
    EXPECT_EQ(trainer->apply().lr, 0.25);
  });
}

TEST(HostLossInGroup, OfParametersInPiecesAllMakeTheSamePairs) {
  each_of_group(2, [&](int rank, Communicator& own) {
    Training training = training_with({{"reduce", "\"step\""}}, 2);
    training.recipe.zero = 3;
    const auto trainer = in_group(training, own);
    const std::string before = trainer->state_digest();
    const std::string inputs = mismatch([&] { pair(*trainer, rank, 0, rank == 0 ? Loss::host : Loss::own); });
    EXPECT_NE(inputs.find("rank 1"), std::string::npos) << inputs;
    EXPECT_NE(inputs.find("gives inputs for the graph's own loss, rank 0 the outputs' gradients"), std::string::npos) << inputs;
    pair(*trainer, rank, 0, Loss::host);
    const std::string calls = mismatch([&] { rank == 0 ? static_cast<void>(trainer->apply()) : pair(*trainer, rank, 0, Loss::host); });
    EXPECT_NE(calls.find("calls forward, rank 0 apply"), std::string::npos) << calls;
    EXPECT_EQ(trainer->state_digest(), before);
    pair(*trainer, rank, 0, Loss::host);
    trainer->apply();
    EXPECT_NE(trainer->state_digest(), before);
  });
}

TEST(HostLossInGroup, ARankThatMakesAStepOfItsOwnLossIsToldOnAll) {
  for (const int zero : {0, 3})
    each_of_group(2, [&](int rank, Communicator& own) {
      Training training = training_with({}, 2);
      training.recipe.zero = zero;
      const auto trainer = in_group(training, own);
      const std::string before = trainer->state_digest();
      const std::string calls = mismatch([&] {
        if (rank == 0) static_cast<void>(trainer->step(micro_batch(0, 0)));
        pair(*trainer, rank, 0, Loss::own);
      });
      EXPECT_NE(calls.find(zero == 3 ? "calls step, rank 1 forward;" : "calls step, rank 1 backward;"), std::string::npos) << calls;
      EXPECT_EQ(trainer->state_digest(), before);
      pair(*trainer, rank, 0, Loss::own);
      trainer->apply();
      EXPECT_NE(trainer->state_digest(), before);
    });
}

// A checkpoint of another run brings one rank to another attempt or loss scale; the ranks notice before they exchange any gradient.
TEST(HostLossInGroup, RanksAtOtherAttemptsOrLossScalesAreToldOnAll) {
  const ScratchFolder scratch("host_loss_in_group");
  const Training one = training_with({{"precision", "\"fp16\""}}, 2);
  for (const bool skips : {false, true}) {
    const auto trainer = one.trainer(false);
    const std::vector<HostView> batch = micro_batch(0, 0);
    const auto outputs = trainer->forward(std::span(batch).first(1));
    std::vector<float> gradient(static_cast<size_t>(outputs[0].shape.elements()), skips ? INFINITY : 0.01F);
    trainer->backward(std::vector<HostView>{plain_view(outputs[0].name, DType::f32, outputs[0].shape, gradient.data())});
    EXPECT_EQ(trainer->apply().skipped, skips);
    save(*trainer, scratch / (skips ? "skipped" : "made"));
  }
  for (const char* reduce : {"\"micro\"", "\"step\""})
    each_of_group(2, [&](int rank, Communicator& own) {
      const auto trainer = in_group(training_with({{"precision", "\"fp16\""}, {"reduce", reduce}}, 2), own);
      const auto refused = [&] {
        return mismatch([&] {
          pair(*trainer, rank, 0, Loss::host);
          trainer->apply();
        });
      };
      ReadOptions any;
      any.partial = true;
      if (rank == 1) resume_from(scratch / "skipped", *trainer, any);
      const std::string attempts = refused();
      EXPECT_NE(attempts.find("has attempted steps: 1, rank 0 0"), std::string::npos) << attempts;
      own.barrier("both have seen it");
      if (rank == 0) resume_from(scratch / "made", *trainer, any);
      const std::string scale = refused();
      EXPECT_NE(scale.find("has loss scale 32768, rank 0 65536"), std::string::npos) << scale;
    });
}

TEST(HostLossInGroup, WeightsThatDifferAreNamedBeforeTheFirstUpdate) {
  each_of_group(3, [&](int rank, Communicator& own) {
    const auto trainer = in_group(training_with({}), own);
    const SlotId beta = trainer->model().parameter_named("final_norm.beta");
    std::vector<float> values(kWidth, 0.5F);
    if (rank == 2) trainer->model().set(beta, plain_view("", DType::f32, {kWidth}, values.data()));
    pair(*trainer, rank, 0, Loss::host);
    EXPECT_NE(mismatch([&] { trainer->apply(); }).find("final_norm.beta"), std::string::npos);
    trainer->model().set(beta, plain_view("", DType::f32, {kWidth}, values.data()));
    pair(*trainer, rank, 0, Loss::host);
    EXPECT_FALSE(trainer->apply().skipped);
  });
}

// T10: whichever rank has it, all skip, and the scale falls on all.
TEST(HostLossInGroup, AGradientThatIsNotFiniteOnOneRankSkipsOnAll) {
  each_of_group(3, [&](int rank, Communicator& own) {
    const auto trainer = in_group(training_with({{"precision", "\"fp16\""}}), own);
    const std::string before = trainer->state_digest();
    const std::vector<HostView> batch = micro_batch(rank, 0);
    const auto outputs = trainer->forward(std::span(batch).first(1));
    std::vector<float> bad(static_cast<size_t>(outputs[0].shape.elements()));
    if (rank == 1) bad[3] = INFINITY;
    trainer->backward(std::vector<HostView>{plain_view(outputs[0].name, DType::f32, outputs[0].shape, bad.data())});
    EXPECT_TRUE(trainer->apply().skipped);
    EXPECT_EQ(trainer->state_digest(), before);
    EXPECT_EQ(trainer->loss_scale(), 32768);
  });
}

TEST(HostLossOnThreads, IsRefusedAndSaysWhatToDo) {
  const Training training = training_of({.name = "", .keys = {}}, 2);
  const auto trainer = training.trainer(false);
  const Error error = error_of([&] { trainer->forward(micro_batch(0, 0)); });
  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_NE(error.message().find("st_trainer_create_in_group"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace st

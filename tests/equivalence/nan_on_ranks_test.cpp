// find_nan on ranks: the rank with the first value that is not finite names it, all ranks throw the same error, and no state changes.
#include <gtest/gtest.h>

#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/build.h"
#include "models/mlp.h"
#include "rank_group.h"
#include "rank_training.h"
#include "refusal.h"

namespace st {
namespace {

constexpr auto kInf = std::numeric_limits<float>::infinity();

/// Rows whose targets are not finite in some micro-batches.
struct Rows {
  static constexpr int64_t kMicroBatches = 5, kRows = 2 * kMicroBatches;

  explicit Rows(std::initializer_list<size_t> bad) : x(2 * kRows), y(kRows) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
    for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 3);
    for (const size_t micro_batch : bad) y[2 * micro_batch + 1] = kInf;
  }
  std::vector<HostView> batch(size_t first, int64_t rows) {
    return {plain_view("x", DType::f32, {rows, 2}, x.data() + 2 * first), plain_view("y", DType::f32, {rows, 1}, y.data() + first)};
  }
  std::vector<HostView> batch() { return batch(0, kRows); }
  static Recipe recipe(int64_t ranks) {
    Recipe made = {.device = "cpu", .batch = 2};
    made.micro_batches = kMicroBatches;
    made.ranks = ranks;
    made.find_nan = true;
    return made;
  }
  static std::shared_ptr<Model> model() {
    const MlpOptions options = {.inputs = 2, .hidden = {3}, .outputs = 1, .activation = "tanh", .loss = "mse"};
    return std::make_shared<Model>(Training{.device = "cpu"}.context(), build_mlp(options), 1);
  }
  std::vector<float> x, y;
};

TEST(NanOnRanks, IsNamedWithItsMicroBatchAndRank) {
  struct Place {
    std::initializer_list<size_t> bad;
    size_t first;
  };
  for (const Place& place : {Place{{0}, 0}, Place{{3}, 3}, Place{{4}, 4}, Place{{1, 2, 4}, 1}, Place{{4, 3}, 3}})
    for (const int64_t ranks : {2, 3, 8})
      for (const int64_t zero : {0, 2, 3}) {
        Rows rows(place.bad);
        Recipe recipe = Rows::recipe(ranks);
        recipe.zero = zero;
        Trainer trainer(Rows::model(), recipe, nullptr);
        const std::string before = trainer.state_digest();
        const Error error = error_of([&] { trainer.step(rows.batch()); });
        EXPECT_EQ(error.code(), Code::not_finite) << error.message();
        EXPECT_TRUE(says(error, text("(forward, micro-batch ", place.first, ", rank ", static_cast<int64_t>(place.first) % ranks, "): ")))
            << ranks << " ranks: " << error.message();
        EXPECT_EQ(error.place.rank, static_cast<int64_t>(place.first) % ranks);
        EXPECT_EQ(error.place.op, "mse");
        EXPECT_EQ(error.place.step, 1);
        EXPECT_EQ(trainer.state_digest(), before);
        Rows fine({});
        EXPECT_FALSE(trainer.step(fine.batch()).skipped) << "and it goes on";
      }
}

TEST(NanOnRanks, OfAWeightIsNamedByWhoReadItAndTheRowsOfTheDataComeAgain) {
  Training training = training_of({.name = "", .keys = {{"find_nan", "true"}}}, 3);
  const auto trainer = training.trainer();
  training.recipe.find_nan = false;
  const auto plain = training.trainer();
  for (const auto* t : {&trainer, &plain}) (*t)->step();
  const SlotId gamma = trainer->model().parameter_named("final_norm.gamma");
  std::vector<float> kept(kWidth), broken;
  trainer->model().get(gamma, plain_view("", DType::f32, {kWidth}, kept.data()));
  broken = kept;
  broken[5] = kInf;
  trainer->model().set(gamma, plain_view("", DType::f32, {kWidth}, broken.data()));
  const Error error = error_of([&] { trainer->step(); });
  EXPECT_EQ(error.code(), Code::not_finite);
  EXPECT_EQ(error.place.op, "layer_norm");
  EXPECT_EQ(error.place.tensor, "final_norm.gamma");
  EXPECT_EQ(error.place.rank, 0);
  EXPECT_TRUE(says(error, "step 2: ")) << error.message();
  EXPECT_TRUE(says(error, "(forward, micro-batch 0, rank 0): ")) << error.message();
  trainer->model().set(gamma, plain_view("", DType::f32, {kWidth}, kept.data()));
  EXPECT_EQ(outcome_of(*trainer, 2), outcome_of(*plain, 2));
}

/// Exceeds fp16's 65504 only in backward: all results of forward are checked and finite.
TEST(NanOnRanks, InBackwardIsThatOfOneRank) {
  const auto message = [](int64_t ranks) {
    const Training training =
        training_of({.name = "", .keys = {{"precision", "\"fp16\""}, {"loss_scale", "1e9"}, {"find_nan", "true"}}}, ranks);
    const auto trainer = training.trainer();
    const Error error = error_of([&] { trainer->step(); });
    EXPECT_EQ(error.code(), Code::not_finite);
    return error.message();
  };
  std::string on_ranks = message(2);
  const std::string rank = ", rank 0";
  const size_t at = on_ranks.find(rank);
  ASSERT_NE(at, std::string::npos) << on_ranks;
  EXPECT_EQ(on_ranks.erase(at, rank.size()), message(1));
}

// Each gradient is finite, their sum is not: no op made it.
TEST(NanOnRanks, OfASumOverRanksIsNamedAsSuch) {
  Recipe recipe = {.device = "cpu", .batch = 1};
  recipe.micro_batches = 2;
  recipe.ranks = 2;
  recipe.find_nan = true;
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(program, 0);
  const Value x = b.input("x", DType::f32, {kBatch, 1}), weight = b.parameter("w", {1, 1}, {.kind = Init::zeros, .values = {}});
  const auto loss = b.append(Op::mse, {b.matmul(x, weight), b.input("y", DType::f32, {kBatch, 1})});
  program.loss_sum = loss[0];
  program.loss_count = loss[1];
  Trainer trainer(std::make_shared<Model>(Training{.device = "cpu"}.context(), program, 1), recipe, nullptr);
  std::vector<float> rows = {3e38F, 3e38F}, targets = {-1, -1};
  const std::vector<HostView> batch = {plain_view("x", DType::f32, {2, 1}, rows.data()),
                                       plain_view("y", DType::f32, {2, 1}, targets.data())};
  const Error error = error_of([&] { trainer.step(batch); });
  EXPECT_EQ(error.code(), Code::not_finite) << error.message();
  EXPECT_TRUE(says(error, "reduce_scatter")) << error.message();
  EXPECT_TRUE(says(error, "(backward, after micro-batch 1, rank 0): inf at [0, 0] of gradient.w. The step")) << error.message();
}

TEST(NanOnRanks, IsToldOnAllRanksOfAGroupWhichIsWholeAfterIt) {
  std::mutex mutex;
  std::vector<std::string> messages;
  each_of_group(3, [&](int rank, Communicator& own) {
    Rows rows({3}), fine({});
    Trainer trainer(Rows::model(), Rows::recipe(1), nullptr, {}, &own);
    // Of five micro-batches, rank 0 has 0 and 3, rank 1 has 1 and 4.
    const auto own_rows = [&](const Rows& of) {
      Rows mine({});
      int64_t count = 0;
      for (size_t k = static_cast<size_t>(rank); k < 5; k += 3, count += 2)
        for (size_t row = 0; row < 2; ++row) {
          const auto at = static_cast<size_t>(count) + row;
          mine.y[at] = of.y[2 * k + row];
          for (size_t i = 0; i < 2; ++i) mine.x[2 * at + i] = of.x[2 * (2 * k + row) + i];
        }
      return std::make_pair(mine, count);
    };
    auto poisoned = own_rows(rows);
    const Error error = error_of([&] { trainer.step(poisoned.first.batch(0, poisoned.second)); });
    EXPECT_TRUE(error.is_on_all_ranks);
    EXPECT_TRUE(says(error, "(forward, micro-batch 3, rank 0): ")) << error.message();
    {
      const std::lock_guard lock(mutex);
      messages.push_back(error.message());
    }
    auto [good, same] = own_rows(fine);
    EXPECT_FALSE(trainer.step(good.batch(0, same)).skipped);
  });
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[1], messages[0]);
  EXPECT_EQ(messages[2], messages[0]);
}

TEST(NanOnRanks, ChangesNoBitOfARunThatIsFinite) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}}, .micro_batches = 3};
  const Outcome alone = outcome_of(*training_of(c, 1).trainer());
  Training training = training_of(c, 2);
  training.recipe.find_nan = true;
  EXPECT_EQ(outcome_of(*training.trainer()), alone);
}

}  // namespace
}  // namespace st

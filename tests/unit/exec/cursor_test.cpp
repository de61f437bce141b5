// A run in slices, and what may end it.
#include <gtest/gtest.h>

#include "models/gpt.h"
#include "program_run.h"
#include "random_program.h"

namespace st {
namespace {

/// A step of a small GPT in two micro-batches, ready to run.
struct Step {
  Step() : run(training_program(build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 5, .vocabulary = 17}), 3, 2), 2) {
    for (int32_t i = 0; i < 15; ++i) tokens.push_back(i * 7 % 17);
    run.bind("tokens", tokens.data());
    run.bind("targets", tokens.data());
    run.data<double>("rates")[0] = 1e-2;
  }
  ProgramRun run;
  std::vector<int32_t> tokens;
};

TEST(Cursor, PiecesOfARunHaveItsBits) {
  Step whole, pieces;
  std::vector<int64_t> seen;
  for (int step = 0; step < 2; ++step) {
    whole.run.run();
    Executor& executor = pieces.run.executor();
    Executor::Cursor cursor;
    size_t calls = 0;
    const auto note = [&](int64_t micro_batch) {
      seen.push_back(micro_batch);
      return true;
    };
    while (!executor.run_until(cursor, executor.end(), 0, note)) ++calls;
    EXPECT_EQ(calls + 1, executor.end()) << "a deadline that has passed still allows one instruction";
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 0, 1}));
  EXPECT_EQ(whole.run.floats("block.0.attention.qkv.weight"), pieces.run.floats("block.0.attention.qkv.weight"));
  EXPECT_EQ(*whole.run.data<double>("loss_sum"), *pieces.run.data<double>("loss_sum"));
}

TEST(Cursor, AsksAgainForRowsThatAreNotThereYet) {
  Step whole, pieces;
  whole.run.run();
  Executor& executor = pieces.run.executor();
  Executor::Cursor cursor;
  std::vector<int64_t> seen;
  const auto every_third_time = [&](int64_t micro_batch) {
    seen.push_back(micro_batch);
    return seen.size() % 3 == 0;
  };
  int calls = 1;
  while (!executor.run_until(cursor, executor.end(), Executor::kNoDeadline, every_third_time)) ++calls;
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(*whole.run.data<double>("loss_sum"), *pieces.run.data<double>("loss_sum"));
}

TEST(Cursor, StopsWhereItIsTold) {
  Step step;
  const auto before = step.run.floats("block.0.attention.qkv.weight");
  Executor& executor = step.run.executor();
  Executor::Cursor cursor;
  EXPECT_TRUE(executor.run_until(cursor, executor.begin_of_update(), Executor::kNoDeadline, {}));
  EXPECT_EQ(cursor.at, executor.begin_of_update());
  EXPECT_EQ(step.run.floats("block.0.attention.qkv.weight"), before);
  EXPECT_TRUE(executor.run_until(cursor, executor.end(), Executor::kNoDeadline, {}));
  EXPECT_NE(step.run.floats("block.0.attention.qkv.weight"), before);
}

TEST(Cursor, FindsThePhasesOfAMicroBatch) {
  Step step;
  const Executor& executor = step.run.executor();
  const Plan& plan = executor.plan();
  const size_t order[] = {plan.first_of(Phase::forward, 0),  plan.first_of(Phase::backward, 0), plan.first_of(Phase::forward, 1),
                          plan.first_of(Phase::backward, 1), executor.begin_of_update(),        executor.end()};
  EXPECT_EQ(order[0], 0U);
  for (size_t i = 1; i < std::size(order); ++i) EXPECT_LT(order[i - 1], order[i]);
  EXPECT_EQ(plan.first_of(Phase::forward, 2), executor.end());
}

TEST(CancelToken, IsUsedUpByOneCall) {
  CancelToken token;
  EXPECT_FALSE(token.take());
  token.cancel();
  token.begin();
  EXPECT_TRUE(token.is_set()) << "its own flag is sticky";
  EXPECT_TRUE(token.take());
  EXPECT_FALSE(token.take());
}

TEST(CancelToken, WatchesACounterFromTheBeginningOfTheCallOn) {
  std::atomic<uint64_t> epoch{3};
  CancelToken token(&epoch), other(&epoch);
  EXPECT_FALSE(token.is_set());
  ++epoch;
  EXPECT_TRUE(token.is_set());
  EXPECT_TRUE(other.take()) << "each call that runs";
  token.begin();
  EXPECT_FALSE(token.is_set()) << "what was counted before the call is not meant for it";
  ++epoch;
  EXPECT_TRUE(token.take());
  EXPECT_FALSE(token.take());
}

}  // namespace
}  // namespace st

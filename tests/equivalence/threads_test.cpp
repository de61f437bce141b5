// The state does not depend on the number of threads, bitwise.
#include <gtest/gtest.h>

#include "training.h"

namespace st {
namespace {

struct TrainedOnThreads {
  std::vector<double> losses;
  std::string digest;
  double evaluated = 0;
};

TrainedOnThreads train(const GptOptions& options, const Recipe& recipe, int threads) {
  const Training training{.device = "cpu", .threads = threads, .options = options, .recipe = recipe, .ignored = true};
  const auto trainer = training.trainer();
  TrainedOnThreads result{.losses = losses_of(*trainer, 5), .digest = trainer->state_digest(), .evaluated = 0};
  result.evaluated = trainer->evaluate(std::make_shared<Sequences>(11, options.context, options.vocabulary)).loss;
  return result;
}

void expect_equal_for_one_to_four_threads(const GptOptions& options, const Recipe& recipe) {
  const TrainedOnThreads one = train(options, recipe, 1);
  for (const int threads : {2, 3, 4}) {
    const TrainedOnThreads many = train(options, recipe, threads);
    EXPECT_EQ(many.losses, one.losses) << threads << " threads";
    EXPECT_EQ(many.digest, one.digest) << threads << " threads";
    EXPECT_EQ(many.evaluated, one.evaluated) << threads << " threads";
  }
}

TEST(Threads, LeaveEveryBitOfAGptWithOddSizes) {
  expect_equal_for_one_to_four_threads({.layers = 2, .width = 39, .heads = 3, .context = 37, .vocabulary = 129}, {.batch = 5});
}

TEST(Threads, LeaveEveryBitWithDropoutAndAccumulation) {
  expect_equal_for_one_to_four_threads({.layers = 2, .width = 12, .heads = 3, .context = 7, .vocabulary = 17},
                                       {.batch = 3, .accumulate = 3, .dropout = 0.2});
}

// Wide enough for products of many tiles and gradients of many blocks of 1024.
TEST(Threads, LeaveEveryBitOfAWiderGpt) {
  expect_equal_for_one_to_four_threads({.layers = 1, .width = 131, .heads = 1, .context = 65, .vocabulary = 301}, {.batch = 7});
}

}  // namespace
}  // namespace st

#include "data/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "data/holdout.h"
#include "thrown_error.h"

namespace st {
namespace {

std::vector<int64_t> items(const DataStream& stream, int64_t first, int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  stream.fill(first, out);
  return out;
}

TEST(Stream, TakesEveryRowOnceAnEpoch) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 100, 255, 256, 257, 4097}) {
    const DataStream stream(rows, 42);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      auto order = items(stream, epoch * rows, rows);
      std::ranges::sort(order);
      std::vector<int64_t> every(static_cast<size_t>(rows));
      std::iota(every.begin(), every.end(), 0);
      ASSERT_EQ(order, every) << rows << " rows, epoch " << epoch;
    }
  }
}

TEST(Stream, DependsOnSeedAndEpochAlone) {
  const DataStream stream(1000, 7);
  EXPECT_EQ(items(stream, 0, 3000), items(DataStream(1000, 7), 0, 3000));
  EXPECT_NE(items(stream, 0, 1000), items(DataStream(1000, 8), 0, 1000));
  EXPECT_NE(items(stream, 0, 1000), items(stream, 1000, 1000));
}

TEST(Stream, GoesOnFromAnyNumber) {
  const DataStream stream(37, 1);
  const auto whole = items(stream, 0, 200);
  for (int64_t cursor = 0; cursor < 200; ++cursor)
    EXPECT_EQ(items(stream, cursor, 200 - cursor), std::vector<int64_t>(whole.begin() + cursor, whole.end()));
}

// From a Python implementation of stream.h and philox.h. A change of the order would change the meaning of every seed and break every
// resume, so it must not go unnoticed.
TEST(Stream, KeepsItsOrderForEver) {
  EXPECT_EQ(items(DataStream(10, 0), 0, 10), (std::vector<int64_t>{5, 8, 3, 6, 0, 2, 1, 9, 4, 7}));
  EXPECT_EQ(items(DataStream(1000003, 42), 1000003, 4), (std::vector<int64_t>{395779, 164862, 695090, 733616}));
}

TEST(Permutation, FavoursNoPlace) {
  // 5 rows, 20000 epochs: each of the 25 (place, row) counts is 4000 on average with a deviation of sqrt(20000 * 0.2 * 0.8) = 57. Six
  // deviations happen once in 500 million.
  constexpr int64_t kRows = 5, kEpochs = 20000;
  std::map<std::pair<int64_t, int64_t>, int> counts;
  std::map<std::vector<int64_t>, int> orders;
  const DataStream stream(kRows, 3);
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = items(stream, epoch * kRows, kRows);
    for (int64_t place = 0; place < kRows; ++place) ++counts[{place, order[static_cast<size_t>(place)]}];
    ++orders[order];
  }
  ASSERT_EQ(counts.size(), 25U);
  for (const auto& [place, count] : counts) EXPECT_NEAR(count, 4000, 6 * 57);
  // All 120 orders, each 166.7 times with a deviation of 12.9.
  ASSERT_EQ(orders.size(), 120U);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 166.7, 6 * 12.9);
}

TEST(Permutation, LeavesNoNeighboursTogether) {
  // In a random order of n, about two pairs (i, i +- 1) stay adjacent (Poisson, mean 2): 20 would be far out.
  const DataStream stream(100000, 5);
  const auto order = items(stream, 0, 100000);
  int64_t together = 0;
  for (size_t i = 1; i < order.size(); ++i) together += std::abs(order[i] - order[i - 1]) == 1;
  EXPECT_LT(together, 20);
  // Positions and rows are not correlated: r has a deviation of 1 / sqrt(n) = 0.003.
  double sum = 0;
  for (size_t i = 0; i < order.size(); ++i) sum += (static_cast<double>(i) - 49999.5) * (static_cast<double>(order[i]) - 49999.5);
  EXPECT_NEAR(sum / (1e5 * 1e10 / 12), 0, 6 * 0.0032);
}

TEST(Permutation, NeedsNoMemoryForManyRows) {
  const DataStream stream(int64_t{3} << 40, 1);
  std::set<int64_t> seen;
  for (const int64_t row : items(stream, int64_t{7} << 40, 1000)) {
    EXPECT_GE(row, 0);
    EXPECT_LT(row, int64_t{3} << 40);
    seen.insert(row);
  }
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(Stream, RefusesNoRows) { EXPECT_THROW(DataStream(0, 1), Error); }

TEST(MicroBatches, OfAllRanksAreTheStepsItems) {
  for (const int64_t ranks : {1, 2, 3, 4, 5, 8})
    for (const int64_t per_step : {1, 2, 5, 8, 13}) {
      std::vector<int64_t> taken;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const MicroBatches share{3, per_step, ranks, rank};
        for (int64_t round = 0; round < share.own(); ++round)
          for (int64_t i = 0; i < share.rows; ++i) taken.push_back(share.first_item(100, share.own(round)) + i);
      }
      std::ranges::sort(taken);
      std::vector<int64_t> expected(static_cast<size_t>(3 * per_step));
      std::iota(expected.begin(), expected.end(), 100);
      EXPECT_EQ(taken, expected) << ranks << " ranks, " << per_step << " micro-batches";
    }
}

TEST(MicroBatches, CutAStepWithoutChangingIt) {
  const MicroBatches whole{12, 1}, parts{3, 4};
  EXPECT_EQ(whole.items_per_step(), parts.items_per_step());
  EXPECT_EQ(parts.first_item(24, 0), whole.first_item(24, 0));
  EXPECT_EQ(parts.first_item(24, 3) + parts.rows, whole.first_item(24, 0) + whole.rows);
}

std::string refusal_of(int64_t tokens, double fraction, int64_t context) {
  const Error error = error_of([&] { split_tokens(tokens, fraction, context, "corpus.txt"); });
  if (error.code() == Code::ok) return "";
  EXPECT_EQ(error.code(), Code::invalid_argument);
  return error.message();
}

TEST(Split, TakesTheTailForValidation) {
  const Split split = split_tokens(1001, 0.1, 10, "corpus.txt");
  EXPECT_EQ(split.train.first, 0);
  EXPECT_EQ(split.train.count, 901);
  EXPECT_EQ(split.validation.first, 901);
  EXPECT_EQ(split.validation.count, 100);
  EXPECT_EQ(split.train.windows(10), 90);      // 90 windows need 901 tokens
  EXPECT_EQ(split.validation.windows(10), 9);  // 9 need 91, 10 would need 101
  EXPECT_EQ(split_tokens(11, 0, 10, "corpus.txt").train.windows(10), 1);
  EXPECT_EQ(split_tokens(11, 0, 10, "corpus.txt").validation.windows(10), 0);
}

TEST(Split, KeepsAWindowForValidation) { EXPECT_EQ(split_tokens(100, 0.01, 10, "corpus.txt").validation.count, 11); }

TEST(Split, SaysHowManyTokensAreMissing) {
  EXPECT_NE(refusal_of(10, 0, 10).find("corpus.txt has 10 tokens; a sequence of context 10 needs 11"), std::string::npos);
  EXPECT_NE(refusal_of(21, 0.1, 10).find("10 are left for training, which needs 11"), std::string::npos);
  EXPECT_EQ(refusal_of(22, 0.1, 10), "");
  for (const double fraction : {-0.1, 1.0, 1.5}) EXPECT_NE(refusal_of(1000, fraction, 10), "");
  EXPECT_NE(refusal_of(1000, std::numeric_limits<double>::quiet_NaN(), 10), "");
  EXPECT_NE(refusal_of(1000, 0.1, 0), "");
}

}  // namespace
}  // namespace st

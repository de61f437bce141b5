#include "data/subset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "refusal.h"

namespace st {
namespace {

/// Row r holds r.
std::shared_ptr<const Dataset> numbers(int64_t rows) {
  auto values = std::make_shared<std::vector<int64_t>>(static_cast<size_t>(rows));
  std::iota(values->begin(), values->end(), 0);
  const void* const data = values->data();
  return std::make_shared<HostArrays>(rows, std::vector<HostArray>{{{"row", DType::i64, {}}, data}}, std::move(values));
}

std::vector<int64_t> rows_of(const Dataset& data) {
  std::vector<int64_t> ids(static_cast<size_t>(data.rows())), values(ids.size());
  std::iota(ids.begin(), ids.end(), 0);
  data.fill(ids, std::array{FieldView{reinterpret_cast<std::byte*>(values.data()), static_cast<int64_t>(values.size() * 8)}});
  return values;
}

TEST(RowSplit, PutsEveryRowOnExactlyOneSide) {
  for (const int64_t rows : {2, 3, 7, 100, 1000})
    for (const double fraction : {0.001, 0.1, 0.5, 0.9, 0.999}) {
      const RowSplit split = split_rows(numbers(rows), fraction, 5);
      std::vector<int64_t> all = rows_of(*split.train);
      std::ranges::copy(rows_of(*split.validation), std::back_inserter(all));
      std::ranges::sort(all);
      std::vector<int64_t> wanted(static_cast<size_t>(rows));
      std::iota(wanted.begin(), wanted.end(), 0);
      EXPECT_EQ(all, wanted) << rows << " rows, fraction " << fraction;
    }
}

TEST(RowSplit, RoundsAndLeavesARowOnEachSide) {
  const auto validating = [](int64_t rows, double fraction) { return split_rows(numbers(rows), fraction, 1).validation->rows(); };
  EXPECT_EQ(validating(100, 0.25), 25);
  EXPECT_EQ(validating(10, 0.26), 3);
  EXPECT_EQ(validating(10, 0.24), 2);
  EXPECT_EQ(validating(10, 1e-300), 1);
  EXPECT_EQ(validating(10, 0.9999), 9);
  EXPECT_EQ(validating(2, 0.5), 1);
}

TEST(RowSplit, IsAFunctionOfTheSeed) {
  const auto train = [](uint64_t seed) { return rows_of(*split_rows(numbers(200), 0.3, seed).train); };
  EXPECT_EQ(train(7), train(7));
  const auto one = train(7), other = train(8);
  EXPECT_NE(std::set(one.begin(), one.end()), std::set(other.begin(), other.end()));
}

TEST(RowSplit, DrawsFromEverywhere) {
  // 200 of 1000 rows validate. Their number in each tenth of the rows is hypergeometric with mean 20 and deviation 3.8: 5 deviations.
  const auto validation = rows_of(*split_rows(numbers(1000), 0.2, 3).validation);
  for (int64_t tenth = 0; tenth < 10; ++tenth) {
    const auto inside = std::ranges::count_if(validation, [&](int64_t row) { return row / 100 == tenth; });
    EXPECT_GE(inside, 1) << tenth;
    EXPECT_LE(inside, 39) << tenth;
  }
}

TEST(RowSplit, KeepsWhatValidatedWhenTheFractionGrows) {
  const auto whole = numbers(100);
  const auto few = rows_of(*split_rows(whole, 0.1, 4).validation), more = rows_of(*split_rows(whole, 0.4, 4).validation);
  EXPECT_TRUE(std::ranges::equal(few, std::span(more).first(few.size())));
}

TEST(RowSplit, CanBeSplitAgain) {
  const RowSplit once = split_rows(numbers(60), 0.5, 1);
  const RowSplit twice = split_rows(once.train, 0.5, 1);
  auto parts = rows_of(*twice.train);
  std::ranges::copy(rows_of(*twice.validation), std::back_inserter(parts));
  auto whole = rows_of(*once.train);
  std::ranges::sort(parts);
  std::ranges::sort(whole);
  EXPECT_EQ(parts, whole);
}

TEST(RowSplit, RefusesWhatLeavesNothing) {
  EXPECT_TRUE(refuses({"2 rows, got 1"}, [] { split_rows(numbers(1), 0.5, 1); }));
  for (const double fraction : {0.0, 1.0, -0.1, 1.5, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(split_rows(numbers(10), fraction, 1), Error) << fraction;
}

TEST(Subset, StaysWithinItsWhole) {
  const auto whole = numbers(10);
  const Permutation order(10, 1);
  EXPECT_NO_THROW(Subset(whole, order, 4, 6));
  EXPECT_THROW(Subset(whole, order, 4, 7), Error);
  EXPECT_THROW(Subset(whole, order, -1, 2), Error);
  const Subset some(whole, order, 0, 3);
  std::vector<int64_t> out(1);
  EXPECT_THROW(some.fill(std::array<int64_t, 1>{3}, std::array{FieldView{reinterpret_cast<std::byte*>(out.data()), 8}}), Error);
}

}  // namespace
}  // namespace st

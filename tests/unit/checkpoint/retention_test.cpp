#include "checkpoint/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/text.h"

namespace st {
namespace {

using Names = std::vector<std::string>;

/// Newest first: steps 9, 8, .. 0.
std::vector<RetainedCheckpoint> ten() {
  std::vector<RetainedCheckpoint> all;
  for (int64_t step = 9; step >= 0; --step) all.push_back({std::to_string(step), step, {}, true});
  return all;
}

TEST(Retention, KeepsTheLast) {
  EXPECT_EQ(to_remove({.last = 3, .every = 0, .best = 0, .higher_is_better = false}, ten()), (Names{"0", "1", "2", "3", "4", "5", "6"}));
  EXPECT_EQ(to_remove({.last = 10, .every = 0, .best = 0, .higher_is_better = false}, ten()), Names());
  EXPECT_EQ(to_remove({.last = 0, .every = 0, .best = 0, .higher_is_better = false}, ten()), Names()) << "0 is all";
  EXPECT_EQ(to_remove({}, {}), Names());
}

TEST(Retention, KeepsEachNth) {
  EXPECT_EQ(to_remove({.last = 1, .every = 4, .best = 0, .higher_is_better = false}, ten()), (Names{"1", "2", "3", "5", "6", "7"}));
}

TEST(Retention, KeepsTheBestAndOfEquallyGoodOnesTheNewer) {
  auto all = ten();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::optional<double>> losses = {9, {}, 2, 2, nan, 1, 5, {}, 2, 7};  // of steps 9, 8, ..
  for (size_t i = 0; i < all.size(); ++i) all[i].metric = losses[i];
  EXPECT_EQ(to_remove({.last = 1, .every = 0, .best = 3, .higher_is_better = false}, all), (Names{"0", "1", "2", "3", "5", "8"}));
  EXPECT_EQ(to_remove({.last = 1, .every = 0, .best = 2, .higher_is_better = true}, all), (Names{"1", "2", "3", "4", "5", "6", "7", "8"}));
}

TEST(Retention, ACorruptOneTakesNobodysPlace) {
  auto all = ten();
  all[0].valid = all[3].valid = false;  // steps 9 and 6
  EXPECT_EQ(to_remove({.last = 2, .every = 3, .best = 0, .higher_is_better = false}, all), (Names{"1", "2", "4", "5", "6"}))
      << "8 and 7 are the last, 9 is newer than they, 6 older and corrupt";
}

TEST(Retention, KeepsTheNewestWhoseWeightsAreFinite) {
  auto all = ten();
  for (size_t i = 0; i < 4; ++i) all[i].finite = false;  // steps 9 to 6
  all[4].valid = false;                                  // step 5
  EXPECT_EQ(to_remove({.last = 2, .every = 0, .best = 0, .higher_is_better = false}, all), (Names{"0", "1", "2", "3", "5", "6", "7"}));
  all[5].has_loss = false;  // step 4
  EXPECT_EQ(to_remove({.last = 2, .every = 0, .best = 0, .higher_is_better = false}, all), (Names{"0", "1", "2", "5", "6", "7"}));
}

TEST(Retention, LeavesCheckpointsOfAnotherRunAlone) {
  auto all = ten();
  for (RetainedCheckpoint& checkpoint : all) checkpoint.model = checkpoint.step < 5 && checkpoint.step % 2 == 0 ? "one" : "two";
  EXPECT_EQ(to_remove({.last = 2, .every = 0, .best = 0, .higher_is_better = false}, all), (Names{"1", "3", "5", "6", "7"}));
  all[9].model = "";  // step 0, a host's
  all[8].model = "";  // step 1, with a manifest that cannot be read
  all[8].valid = false;
  EXPECT_EQ(to_remove({.last = 2, .every = 0, .best = 0, .higher_is_better = false}, all), (Names{"1", "3", "5", "6", "7"}));
  for (size_t i = 4; i < 10; ++i) all[i].earlier = true;
  EXPECT_EQ(to_remove({.last = 2, .every = 0, .best = 0, .higher_is_better = false}, all), (Names{"6", "7"}));
}

/// Whether one is kept, by the definition: from its position in the list.
bool stays(const Retention& r, const std::vector<RetainedCheckpoint>& all, size_t i) {
  const auto counts = [&](const auto& of) { return std::ranges::count_if(all, of); };
  if (r.last == 0) return true;
  if (std::count_if(all.begin(), all.begin() + static_cast<int64_t>(i), [](const auto& c) { return c.valid; }) < r.last) return true;
  if (!all[i].valid) return false;
  const auto is_first = [&](const auto& is_so) {
    return is_so(all[i]) && std::none_of(all.begin(), all.begin() + static_cast<int64_t>(i), is_so);
  };
  if (is_first([](const RetainedCheckpoint& c) { return c.valid && c.finite; })) return true;
  if (is_first([](const RetainedCheckpoint& c) { return c.valid && c.finite && c.has_loss; })) return true;
  if (r.every > 0 && all[i].step % r.every == 0) return true;
  const auto good = [](const RetainedCheckpoint& c) { return c.valid && c.metric && !std::isnan(*c.metric); };
  if (!good(all[i])) return false;
  const double mine = *all[i].metric;
  return counts([&](const RetainedCheckpoint& c) {
           if (!good(c)) return false;
           return *c.metric == mine ? &c < &all[i] : (*c.metric > mine) == r.higher_is_better;
         }) < r.best;
}

TEST(Retention, IsWhatItsWordsSayOfAnyList) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t below) { return static_cast<int64_t>(random() % static_cast<uint64_t>(below)); };
  for (int round = 0; round < 3000; ++round) {
    const Retention retention{draw(5), draw(4), draw(4), draw(2) == 1};
    std::vector<RetainedCheckpoint> all;
    for (int64_t n = draw(12); n > 0; --n) {
      const int64_t step = draw(30);  // in any order, as after rollbacks
      std::optional<double> metric;
      if (draw(4) > 0) metric = draw(8) == 0 ? std::nan("") : static_cast<double>(draw(5));
      all.push_back({text(n), step, metric, draw(5) > 0, draw(3) > 0, draw(3) > 0});
    }
    Names expected;
    for (size_t i = all.size(); i-- > 0;)
      if (!stays(retention, all, i)) expected.push_back(all[i].name);
    const Names removed = to_remove(retention, all);
    ASSERT_EQ(removed, expected) << "round " << round;
    const auto newest = std::ranges::find_if(all, [](const auto& c) { return c.valid; });
    if (newest != all.end()) {
      ASSERT_EQ(std::ranges::count(removed, newest->name), 0);
    }
  }
}

}  // namespace
}  // namespace st

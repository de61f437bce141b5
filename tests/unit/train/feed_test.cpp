#include "team/feed.h"

#include <gtest/gtest.h>

#include "sequences.h"

namespace st {
namespace {

std::vector<int32_t> tokens_of(std::span<const HostView> views) {
  const auto* tokens = static_cast<const int32_t*>(views[0].data);
  return {tokens, tokens + views[0].shape.elements()};
}

std::span<const HostView> next_of(Feed& feed) { return *feed.next(Patience{}); }

TEST(Feed, GivesTheRowsOfTheEndlessStreamInOrder) {
  const auto data = std::make_shared<Sequences>(10, 4, 100);
  Feed feed(data, 3, {.rows = 2, .per_step = 3}, 0);
  const DataStream stream(10, 3);
  for (int64_t item = 0; item < 40; item += 2) {  // four epochs
    const auto views = next_of(feed);
    ASSERT_EQ(views.size(), 2U);
    EXPECT_EQ(views[0].name, "tokens");
    EXPECT_EQ(views[1].name, "targets");
    EXPECT_EQ(views[0].shape, (Shape{2, 4}));
    for (int64_t r = 0; r < 2; ++r) EXPECT_EQ(tokens_of(views)[static_cast<size_t>(r * 4)], stream[item + r] * 3);
  }
}

TEST(Feed, StartsAtAnyStep) {
  const auto data = std::make_shared<Sequences>(10, 4, 100);
  Feed whole(data, 3, {.rows = 2, .per_step = 3}, 0),
      later(data, 3, {.rows = 2, .per_step = 3}, 12);  // two steps of 3 micro-batches of 2 rows
  for (int i = 0; i < 6; ++i) next_of(whole);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(tokens_of(next_of(whole)), tokens_of(next_of(later)));
}

TEST(Feed, KeepsTheDatasetAlive) {
  auto data = std::make_shared<Sequences>(10, 4, 100);
  const std::weak_ptr<Sequences> watch = data;
  {
    Feed feed(std::move(data), 3, {.rows = 2, .per_step = 1}, 0);
    EXPECT_FALSE(watch.expired());
    next_of(feed);
  }
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace st

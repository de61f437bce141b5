#include "comm/hand_over.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace st {
namespace {

using Side = HandOver::Side;
constexpr double kLong = 20;  // seconds

bool comes(HandOver& link, Side side, int64_t message) {
  while (!link.wait(side, message, kLong))
    if (link.has_ended()) return false;
  return true;
}

TEST(HandOver, PassesMessagesWhicheverSideIsAhead) {
  for (const int64_t ahead : {1, 3, 50}) {  // more than the first room
    HandOver link;
    constexpr int64_t kCount = 500;
    std::vector<std::array<int64_t, 3>> sent(kCount), received(kCount);
    const auto run = [&](Side side, std::vector<std::array<int64_t, 3>>& values) {
      for (int64_t n = 1; n <= kCount; ++n) {
        auto& value = values[static_cast<size_t>(n) - 1];
        if (side == Side::sends) value = {n, -n, n * n};
        link.add(side, value.data(), sizeof value);
        ASSERT_TRUE(n <= ahead || comes(link, side, n - ahead));
      }
      ASSERT_TRUE(comes(link, side, kCount));
    };
    std::thread sender([&] { run(Side::sends, sent); });
    run(Side::receives, received);
    sender.join();
    EXPECT_EQ(received, sent);
  }
}

TEST(HandOver, LeavesMemoryAloneOnceItHasEnded) {
  HandOver link;
  int64_t from = 7, to = 1;
  link.add(Side::sends, &from, sizeof from);
  EXPECT_FALSE(link.wait(Side::sends, 1, 0.001));
  std::thread waits([&] { EXPECT_FALSE(comes(link, Side::sends, 1)); });
  link.end();
  waits.join();
  link.add(Side::receives, &to, sizeof to);
  EXPECT_FALSE(link.wait(Side::receives, 1, kLong));
  EXPECT_EQ(to, 1);
  EXPECT_FALSE(link.differs());
}

TEST(HandOver, EndsWhereTheSidesGiveDifferentSizes) {
  HandOver link;
  std::array<int64_t, 2> from = {7, 7}, to = {1, 1};
  link.add(Side::sends, from.data(), sizeof from);
  link.add(Side::receives, to.data(), sizeof to[0]);
  EXPECT_TRUE(link.differs());
  EXPECT_FALSE(link.wait(Side::sends, 1, kLong));
  EXPECT_FALSE(link.wait(Side::receives, 1, kLong));
  EXPECT_EQ(to[0], 1);
}

}  // namespace
}  // namespace st

#include "comm/hand_over.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "../../equivalence/rank_group.h"
#include "comm/link.h"

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

TEST(HandOver, GivesTheNumbersOfOffersInOrderAndCountsThoseThatAreTaken) {
  for (const int64_t ahead : {1, 3, 50}) {
    HandOver link;
    constexpr uint64_t kCount = 500;
    std::vector<uint64_t> numbers;
    std::thread sender([&] {
      for (uint64_t n = 1; n <= kCount; ++n) {
        link.offer(n * n, 24);
        ASSERT_TRUE(static_cast<int64_t>(n) <= ahead || comes(link, Side::sends, static_cast<int64_t>(n) - ahead));
      }
      ASSERT_TRUE(comes(link, Side::sends, kCount));
    });
    while (numbers.size() < kCount) {
      const auto number = link.offered(24, kLong);
      if (!number) continue;
      numbers.push_back(*number);
      link.taken();
    }
    sender.join();
    for (uint64_t n = 1; n <= kCount; ++n) EXPECT_EQ(numbers[n - 1], n * n);
  }
}

TEST(HandOver, GivesNoOfferOnceItHasEnded) {
  HandOver link;
  EXPECT_FALSE(link.offered(8, 0.001));
  link.offer(7, 8);
  EXPECT_EQ(link.offered(8, kLong), 7);
  EXPECT_FALSE(link.wait(Side::sends, 1, 0.001)) << "it is not taken yet";
  std::thread waits([&] { EXPECT_FALSE(comes(link, Side::sends, 1)); });
  link.end();
  waits.join();
  EXPECT_FALSE(link.offered(8, kLong));
  link.taken();
  EXPECT_FALSE(link.wait(Side::sends, 1, kLong));
  EXPECT_FALSE(link.differs());
}

TEST(HandOver, EndsWhereOneSideOffersAndTheOtherCopies) {
  int64_t value = 7;
  HandOver offered, expected, posted, longer;
  offered.offer(1, sizeof value);
  offered.add(Side::receives, &value, sizeof value);
  expected.add(Side::receives, &value, sizeof value);
  expected.offer(1, sizeof value);
  posted.add(Side::sends, &value, sizeof value);
  EXPECT_FALSE(posted.offered(sizeof value, kLong));
  longer.offer(1, sizeof value);
  EXPECT_FALSE(longer.offered(2 * sizeof value, kLong));
  for (HandOver* const link : {&offered, &expected, &posted, &longer}) {
    EXPECT_TRUE(link->differs());
    EXPECT_FALSE(link->wait(Side::sends, 1, kLong));
  }
  EXPECT_EQ(value, 7);
}

TEST(Link, SharesAMemoryThatBothEndsName) {
  const int one = 0, other = 0;
  each_of_group(2, [&](int rank, Communicator& ranks) {
    const LinkEnds ends{.from = 0, .to = 1};
    const auto shares = [&](const void* of_first, const void* of_second) {
      return make_links(ranks, std::span(&ends, 1), {}, rank == 0 ? of_first : of_second)[0]->shares_memory();
    };
    EXPECT_TRUE(shares(&one, &one));
    EXPECT_FALSE(shares(&one, &other));
    EXPECT_FALSE(shares(&one, nullptr));
    EXPECT_FALSE(shares(nullptr, nullptr));
  });
}

/// Its sender is done as soon as it has posted.
TEST(Link, BetweenThreadsEndsOnceItsMessagesAreTaken) {
  std::atomic<bool> is_posted = false;
  each_of_group(2, [&](int rank, Communicator& ranks) {
    std::array<double, 2> values = rank == 0 ? std::array{1.5, 2.5} : std::array{0.0, 0.0};  // outlives the link, which borrows it
    const LinkEnds ends{.from = 0, .to = 1};
    std::vector<std::unique_ptr<Link>> links = make_links(ranks, std::span(&ends, 1), {});
    if (rank == 0) {
      for (double& value : values) links[0]->post(&value, 1, DType::f64, "value");
      is_posted = true;
      return;
    }
    while (!is_posted) std::this_thread::yield();
    for (double& value : values) links[0]->receive(&value, 1, DType::f64, "value");
    EXPECT_EQ(values, (std::array{1.5, 2.5}));
  });
}

}  // namespace
}  // namespace st

// Collectives that continue after their call returns.
#include <chrono>
#include <memory>

#include "thread_ranks.h"

namespace {

using namespace st::test;

int32_t is_done(st_pending* pending) { return asked<int32_t>(st_pending_poll, pending); }

TEST(PendingCollectives, ReturnAtOnceAndAreDoneInTheirOrder) {
  constexpr int kCalls = 20;
  const ThreadRanks ranks(3);
  ranks.each([&](int rank, st_communicator* own) {
    std::vector<std::vector<float>> values;
    std::vector<HeldPending> pendings(kCalls);
    for (int i = 0; i < kCalls; ++i) {
      values.emplace_back(100 + i, static_cast<float>(rank + i));
      EXPECT_TRUE(works(st_communicator_all_reduce(own, "g", Floats(ST_F32, values.back()), ST_REDUCE_SUM, pendings[i].out())));
    }
    // Ordered after all of them: when it returns, they are done.
    EXPECT_TRUE(works(st_communicator_barrier(own, nullptr, nullptr)));
    for (int i = 0; i < kCalls; ++i) {
      EXPECT_EQ(is_done(pendings[i]), 1) << i;
      EXPECT_TRUE(works(st_pending_wait(pendings[i], 0)));
      EXPECT_EQ(values[i], std::vector<float>(values[i].size(), static_cast<float>(3 + 3 * i)));
    }
  });
}

TEST(PendingCollectives, GoOnWhileTheHostDoesSomethingElse) {
  const ThreadRanks ranks(2);
  std::vector<float> mine(50, 1), theirs(50, 2);
  const char* json = nullptr;
  const auto pending = hold<HeldPending>(st_communicator_all_reduce, ranks[0], "early", Floats(ST_F32, mine), ST_REDUCE_SUM);
  EXPECT_TRUE(fails(ST_TIMEOUT, st_pending_wait(pending, 20), {"still running"}));
  EXPECT_EQ(is_done(pending), 0);
  for (int looks = 0; looks < 5000; ++looks) {  // its thread may be late
    ASSERT_TRUE(works(st_communicator_flight_record(ranks[0], &json)));
    if (std::string(json).find("early") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_NE(std::string(json).find("early"), std::string::npos) << json;
  EXPECT_NE(std::string(json).find("\"ended_us\":0"), std::string::npos) << json;
  ASSERT_TRUE(works(st_communicator_all_reduce(ranks[1], "early", Floats(ST_F32, theirs), ST_REDUCE_SUM, nullptr)));
  EXPECT_TRUE(works(st_pending_wait(pending, -1)));
  EXPECT_EQ(mine, std::vector<float>(50, 3));
}

TEST(PendingCollectives, OfEveryKind) {
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    std::vector<float> a = {1, 2}, b(1), c(2), d = {5, 6}, e(2), f(2, static_cast<float>(rank)), g = {static_cast<float>(8 + rank)};
    const Floats whole(ST_F32, a), share(ST_F32, b), gathered(ST_F32, c), parts(ST_F32, d), traded(ST_F32, e), told(ST_F32, f);
    const Floats letter(ST_F32, g);
    HeldPending pendings[6];
    EXPECT_TRUE(works(st_communicator_reduce_scatter(own, nullptr, whole, share, ST_REDUCE_SUM, pendings[0].out())));
    EXPECT_TRUE(works(st_communicator_all_gather(own, nullptr, share, gathered, pendings[1].out())));
    EXPECT_TRUE(works(st_communicator_all_to_all(own, nullptr, parts, traded, pendings[2].out())));
    EXPECT_TRUE(works(st_communicator_broadcast(own, nullptr, told, 1, pendings[3].out())));
    EXPECT_TRUE(works(rank == 0 ? st_communicator_send(own, nullptr, letter, 1, pendings[4].out())
                                : st_communicator_receive(own, nullptr, letter, 0, pendings[4].out())));
    EXPECT_TRUE(works(st_communicator_barrier(own, nullptr, pendings[5].out())));
    for (const HeldPending& pending : pendings) EXPECT_TRUE(works(st_pending_wait(pending, -1)));
    EXPECT_EQ(c, (std::vector<float>{2, 4}));
    EXPECT_EQ(e, std::vector<float>(2, static_cast<float>(5 + rank)));
    EXPECT_EQ(f, std::vector<float>(2, 1));
    EXPECT_EQ(g, std::vector<float>{8});
  });
}

TEST(PendingCollectives, KeepTheirErrorAndTellItEachTime) {
  const ThreadRanks ranks(2, 100);
  std::vector<float> values(10);
  const auto first = hold<HeldPending>(st_communicator_all_reduce, ranks[0], "lonely", Floats(ST_F32, values), ST_REDUCE_SUM);
  const auto second = hold<HeldPending>(st_communicator_barrier, ranks[0], "behind");
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(fails(ST_TIMEOUT, st_pending_wait(first, -1), {"rank 1", "lonely"}));
    const auto info = last_error();
    EXPECT_EQ(info.rank, 1);
    EXPECT_STREQ(info.tensor, "lonely");
  }
  EXPECT_TRUE(fails(ST_TIMEOUT, st_pending_wait(second, -1), {"rank 1"})) << "the group has ended";
  EXPECT_TRUE(fails(ST_TIMEOUT, st_communicator_barrier(ranks[0], nullptr, nullptr), {"rank 1"}));
}

TEST(PendingCollectives, ADestroyedHandleHasWaitedForItsWork) {
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    for (int i = 0; i < 50; ++i) {
      const auto values = std::make_unique<std::vector<float>>(1000, 1);  // freed before the next round
      auto pending = hold<HeldPending>(st_communicator_all_reduce, own, nullptr, Floats(ST_F32, *values), ST_REDUCE_SUM);
      if ((i + rank) % 3 == 0) std::this_thread::yield();
      pending.reset();
      EXPECT_EQ(values->back(), 2);
    }
  });
}

TEST(PendingCollectives, ACommunicatorThatIsDestroyedDoesThemFirst) {
  ThreadRanks ranks(3);
  std::vector<std::vector<float>> values(3, std::vector<float>(1000, 1));
  std::vector<HeldPending> pendings(3);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10 * rank));
      EXPECT_TRUE(works(st_communicator_all_reduce(ranks[static_cast<int>(rank)], nullptr, Floats(ST_F32, values[rank]), ST_REDUCE_SUM,
                                                   pendings[rank].out())));
      ranks.ranks[rank].reset();
      EXPECT_EQ(is_done(pendings[rank]), 1);
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(works(st_pending_wait(pendings[rank], 0)));
    EXPECT_EQ(values[rank], std::vector<float>(1000, 3));
  }
}

TEST(PendingCollectives, AreCancelledWithTheirContext) {
  const ThreadRanks ranks(2);
  std::vector<float> values(10);
  const auto first = hold<HeldPending>(st_communicator_all_reduce, ranks[0], "g", Floats(ST_F32, values), ST_REDUCE_SUM);
  const auto second = hold<HeldPending>(st_communicator_barrier, ranks[0], nullptr);
  ASSERT_TRUE(works(st_context_cancel(ranks.context)));
  EXPECT_TRUE(fails(ST_CANCELLED, st_pending_wait(first, -1), {"all_reduce"}));
  EXPECT_TRUE(fails(ST_CANCELLED, st_pending_wait(second, -1)));
}

TEST(PendingCollectives, AreNotMadeByACallThatFails) {
  const ThreadRanks ranks(1);
  HeldPending pending;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_broadcast(ranks[0], nullptr, nullptr, 0, pending.out()), {"NULL"}));
  EXPECT_EQ(static_cast<st_pending*>(pending), nullptr);
}

}  // namespace

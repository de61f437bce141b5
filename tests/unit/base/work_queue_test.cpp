// Work that is done in order on another thread, or by the thread that waits for it.
#include "base/work_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "allocations.h"
#include "base/error.h"

namespace {

using namespace st;

struct Item final : WorkQueue::Work {
  explicit Item(std::function<void()> what) : body(std::move(what)) {}
  void run() override { body(); }

  std::function<void()> body;
};

TEST(WorkQueue, RunsItemsInOrder) {
  std::vector<int> done;  // written by one thread at a time, read after drain()
  std::list<Item> items;
  WorkQueue queue;
  for (int i = 0; i < 100; ++i) queue.post(items.emplace_back([&done, i] { done.push_back(i); }));
  queue.drain();
  ASSERT_EQ(done.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
  for (const Item& item : items) EXPECT_TRUE(queue.is_done(item));
  EXPECT_TRUE(queue.is_idle());
}

TEST(WorkQueue, KeepsTheErrorOfEachItemUntilItIsPostedAgain) {
  WorkQueue queue;
  bool fails = true;
  Item bad([&] {
    if (fails) fail(Code::timeout, "nobody came");
  }),
      good([] {});
  queue.post(bad);
  queue.post(good);
  EXPECT_NO_THROW(queue.wait(good));
  for (int time = 0; time < 2; ++time) EXPECT_THROW(queue.wait(bad), Error);
  EXPECT_NO_THROW(queue.finish(bad));
  fails = false;
  queue.post(bad);
  EXPECT_NO_THROW(queue.wait(bad));
}

TEST(WorkQueue, FinishesPostedWorkOnDestruction) {
  std::atomic<int> done{0};
  std::list<Item> items;
  {
    WorkQueue queue;
    for (int i = 0; i < 20; ++i) queue.post(items.emplace_back([&done] { ++done; }));
  }
  EXPECT_EQ(done, 20);
}

TEST(WorkQueue, TheThreadThatWaitsRunsWhatTheOtherHasNotBegun) {
  constexpr std::chrono::seconds kPatience{30};  // the other thread may always be first, but hardly for that long
  WorkQueue queue;
  std::thread::id by;
  Item item([&] { by = std::this_thread::get_id(); });
  const auto began = std::chrono::steady_clock::now();
  while (by != std::this_thread::get_id() && std::chrono::steady_clock::now() - began < kPatience) {
    queue.post(item);
    queue.wait(item);
  }
  EXPECT_EQ(by, std::this_thread::get_id());
}

TEST(WorkQueue, RunsOneItemAtATimeWhoeverWaits) {
  WorkQueue queue;
  std::atomic<int> under_way{0}, most{0};
  int done = 0;
  std::list<Item> items;
  for (int i = 0; i < 200; ++i)
    queue.post(items.emplace_back([&] {
      most = std::max(most.load(), ++under_way);
      std::this_thread::yield();
      ++done;
      --under_way;
    }));
  std::thread other([&] { queue.finish(items.back()); });  // as the end of an object that posted
  queue.drain();
  other.join();
  EXPECT_EQ(done, 200);
  EXPECT_EQ(most, 1);
}

TEST(WorkQueue, PostingAllocatesNothing) {
  WorkQueue queue;
  std::atomic<bool> may_run{false};
  Item first([&] {
    while (!may_run) std::this_thread::yield();
  }),
      second([] {});
  queue.post(second);  // starts the thread
  queue.drain();
  const int64_t before = allocations();
  queue.post(first);
  queue.post(second);
  EXPECT_EQ(allocations(), before);
  may_run = true;
  queue.drain();
}

TEST(WorkQueue, AnItemRunsAsACallThatBeganWhenItWasPosted) {
  WorkQueue queue;
  std::atomic<uint64_t> now{3}, of_call{0};
  queue.count_cancels(now, of_call);
  uint64_t seen[2] = {};
  std::atomic<bool> may_run{false};
  Item before([&] {
    while (!may_run) std::this_thread::yield();
    seen[0] = of_call;
  }),
      after([&] { seen[1] = of_call; });
  queue.post(before);
  now = 4;
  queue.post(after);
  may_run = true;
  queue.drain();
  EXPECT_EQ(seen[0], 3U);
  EXPECT_EQ(seen[1], 4U);
}

}  // namespace

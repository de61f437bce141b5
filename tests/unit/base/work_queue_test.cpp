// Work that is done in order on another thread.
#include "base/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "base/error.h"

namespace {

using namespace st;

void post(WorkQueue& queue, Pending& pending, std::function<void()> work) { queue.post(queue.prepare(std::move(work)), pending); }

TEST(WorkQueue, RunsItemsInOrder) {
  std::vector<int> done;  // written by one thread, read after drain()
  std::vector<std::unique_ptr<Pending>> pendings;
  WorkQueue queue;
  for (int i = 0; i < 100; ++i) {
    pendings.push_back(std::make_unique<Pending>());
    post(queue, *pendings.back(), [&done, i] { done.push_back(i); });
  }
  queue.drain();
  ASSERT_EQ(done.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
  for (const auto& pending : pendings) EXPECT_TRUE(pending->is_done());
}

TEST(WorkQueue, ReportsEachPendingItsOwnError) {
  WorkQueue queue;
  Pending bad, good;
  post(queue, bad, [] { fail(Code::timeout, "nobody came"); });
  post(queue, good, [] {});
  EXPECT_TRUE(good.wait(-1));
  for (int time = 0; time < 2; ++time) EXPECT_THROW(bad.wait(-1), Error);
}

TEST(WorkQueue, FinishesPostedWorkOnDestruction) {
  std::atomic<int> done{0};
  std::vector<std::unique_ptr<Pending>> pendings;
  {
    WorkQueue queue;
    for (int i = 0; i < 20; ++i) {
      pendings.push_back(std::make_unique<Pending>());
      post(queue, *pendings.back(), [&done] { ++done; });
    }
  }
  EXPECT_EQ(done, 20);
}

TEST(WorkQueue, DestroyingAPendingWaitsForItsWork) {
  WorkQueue queue;
  for (int i = 0; i < 200; ++i) {
    int value = 0;
    {
      Pending pending;
      post(queue, pending, [&value] { value = 1; });
    }
    EXPECT_EQ(value, 1);
  }
}

TEST(WorkQueue, DoesNotRunWorkThatWasNotPosted) {
  const auto held = std::make_shared<int>(0);
  WorkQueue queue;
  {
    const WorkQueue::Prepared prepared = queue.prepare([held] { ++*held; });
    EXPECT_EQ(held.use_count(), 2);
  }
  queue.drain();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 0);
}

}  // namespace

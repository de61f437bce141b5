#include "base/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "allocations.h"
#include "base/error.h"

namespace st {
namespace {

TEST(Workers, CallEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    Workers workers(threads);
    EXPECT_EQ(workers.threads(), threads);
    for (const int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(tasks));
      workers.run(tasks, [&](int64_t i) { calls[static_cast<size_t>(i)].fetch_add(1); });
      for (const auto& count : calls) EXPECT_EQ(count.load(), 1) << threads << " threads, " << tasks << " tasks";
    }
  }
}

TEST(Workers, SeeWhatTheCallerWroteAndShowWhatTheyWrote) {
  // Plain memory on purpose: under ThreadSanitizer this proves that run() orders it.
  Workers workers(4);
  std::vector<int64_t> in(64), out(64);
  for (int64_t round = 0; round < 5000; ++round) {
    std::iota(in.begin(), in.end(), round);
    workers.run(64, [&](int64_t i) { out[static_cast<size_t>(i)] = 2 * in[static_cast<size_t>(i)]; });
    ASSERT_EQ(std::accumulate(out.begin(), out.end(), int64_t{0}), 64 * 2 * round + 64 * 63);
  }
}

TEST(Workers, WakeAfterSleeping) {
  Workers workers(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // far longer than they spin
    std::atomic<int64_t> sum{0};
    workers.run(100, [&](int64_t i) { sum += i; });
    ASSERT_EQ(sum.load(), 4950);
  }
}

// A guest's frames: work, then a pause far longer than threads spin. CPU time, unlike wall time, does not depend on other processes.
TEST(Workers, TakeNoCoreBetweenFrames) {
  Workers workers(2);
  const std::clock_t before = std::clock();
  for (int frame = 0; frame < 30; ++frame) {
    workers.run(2, [](int64_t) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.06) << "of at least 0.3 s; one that spins takes all of it";
}

TEST(Workers, ShareTheTasks) {
  Workers workers(2);
  // Neither task ends before the other has started (for up to 30 s): a pool that ran both on one thread would fail.
  std::atomic<int> begun{0};
  std::atomic<int> met{0};
  workers.run(2, [&](int64_t) {
    ++begun;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (begun.load() < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    met += begun.load() == 2;
  });
  EXPECT_EQ(met.load(), 2);
}

// So that a thread finds in its cache what it wrote in the job before.
TEST(Workers, StartEachThreadAtItsOwnShare) {
  Workers workers(2);
  std::array<std::thread::id, 8> ran;
  std::atomic<bool> second{false};
  workers.run(8, [&](int64_t i) {
    ran[static_cast<size_t>(i)] = std::this_thread::get_id();
    if (i == 4) second = true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);  // if one thread had to do all, it would wait in vain
    while (i == 0 && !second && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  EXPECT_TRUE(second);
  EXPECT_EQ(ran[0], std::this_thread::get_id());
  EXPECT_NE(ran[4], ran[0]);
  EXPECT_EQ(std::ranges::count(ran, std::thread::id()), 0);
}

TEST(Workers, CutRangesBySizeOnly) {
  for (const int threads : {1, 3}) {
    Workers workers(threads);
    std::vector<std::pair<int64_t, int64_t>> pieces(4);
    workers.run_range(10, 3, [&](int64_t begin, int64_t end) { pieces[static_cast<size_t>(begin / 3)] = {begin, end}; });
    const std::vector<std::pair<int64_t, int64_t>> expected = {{0, 3}, {3, 6}, {6, 9}, {9, 10}};
    EXPECT_EQ(pieces, expected);
  }
}

TEST(Workers, RethrowTheLowestTasksErrorAfterAllEnded) {
  for (const int threads : {1, 2, 5}) {
    Workers workers(threads);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> ended{0};
      try {
        workers.run(40, [&](int64_t i) {
          ++ended;
          if (i % 10 == 3) throw std::runtime_error(std::to_string(i));
        });
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "3");
        EXPECT_EQ(ended.load(), 40);
      }
    }
    std::atomic<int> calls{0};
    workers.run(10, [&](int64_t) { ++calls; });  // the pool still works, and the old error is gone
    EXPECT_EQ(calls.load(), 10);
  }
}

TEST(Workers, RunNestedCallsInTheCallingTask) {
  Workers workers(4);
  Workers others(4);
  std::atomic<int> inner{0};
  std::atomic<int> elsewhere{0};
  workers.run(16, [&](int64_t) {
    const auto thread = std::this_thread::get_id();
    const auto body = [&](int64_t) {
      ++inner;
      elsewhere += std::this_thread::get_id() != thread;
    };
    workers.run(5, body);
    others.run(5, body);
  });
  EXPECT_EQ(inner.load(), 160);
  EXPECT_EQ(elsewhere.load(), 0);
}

TEST(Workers, AllocateNothingInRun) {
  Workers workers(3);
  std::atomic<int64_t> sum{0};
  const auto body = [&](int64_t i) { sum += i; };
  workers.run(100, body);
  const int64_t before = allocations();
  for (int round = 0; round < 200; ++round) workers.run(100, body);
  EXPECT_EQ(allocations(), before);
  EXPECT_EQ(sum.load(), 201 * 4950);
}

TEST(Workers, RefuseNoThreads) {
  EXPECT_THROW(Workers(0), Error);
  EXPECT_THROW(Workers(-3), Error);
}

// A host whose parallel-for runs backwards on its own thread.
struct Host {
  int64_t calls = 0;
  static void run(void* user, int64_t n, void (*task)(void* arg, int64_t i), void* arg) {
    ++static_cast<Host*>(user)->calls;
    std::thread([&] {
      for (int64_t i = n; i-- > 0;) task(arg, i);
    }).join();
  }
};

TEST(HostParallel, RunsTheTasks) {
  Host host;
  Workers workers(8, {Host::run, &host});
  std::vector<int> calls(100);
  workers.run(100, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
  EXPECT_EQ(calls, std::vector<int>(100, 1));
  EXPECT_EQ(host.calls, 1);
}

TEST(HostParallel, IsNeverPassedByAnException) {
  Host host;
  Workers workers(8, {Host::run, &host});
  int calls = 0;
  try {
    workers.run(10, [&](int64_t i) {
      ++calls;
      if (i > 3) throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "4");
  }
  EXPECT_EQ(calls, 10);
}

}  // namespace
}  // namespace st

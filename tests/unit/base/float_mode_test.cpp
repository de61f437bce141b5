#include "base/float_mode.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/workers.h"

#if defined(__x86_64__)

namespace st {
namespace {

/// Whether half of the smallest normal number is not zero, computed at run time in the current mode; ours flushes it to zero. Not inlined,
/// like any host function: a compiler that does not know of modes would move the computation.
[[gnu::noinline]] bool keeps_denormals() {
  volatile float least = 0x1p-126F;
  volatile float half = 0.5F;
  return least * half != 0;
}

/// What a host's pool saw before, in and after the tasks.
struct Pool {
  bool before = false, between = false, after = false;
  static void on_the_caller(void* user, int64_t n, void (*task)(void* arg, int64_t i), void* arg) {
    auto& pool = *static_cast<Pool*>(user);
    pool.before = keeps_denormals();
    for (int64_t i = 0; i < n; ++i) {
      task(arg, i);
      pool.between = keeps_denormals();
    }
    pool.after = keeps_denormals();
  }
  static void on_a_thread(void* user, int64_t n, void (*task)(void* arg, int64_t i), void* arg) {
    std::thread([&] { on_the_caller(user, n, task, arg); }).join();
  }
};

TEST(FloatMode, HoldsInEveryTask) {
  Pool pool;
  Workers threads(4), here(4, {Pool::on_the_caller, &pool}), there(4, {Pool::on_a_thread, &pool});
  for (Workers* workers : {&threads, &here, &there}) {
    const FloatMode mode;  // the caller's own
    std::atomic<int> kept{0};
    workers->run(64, [&](int64_t) {
      kept += keeps_denormals();
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // so that every thread gets some
    });
    EXPECT_EQ(kept.load(), 0);
  }
}

TEST(FloatMode, GivesTheCallersModeBack) {
  EXPECT_TRUE(keeps_denormals());
  {
    const FloatMode mode;
    EXPECT_FALSE(keeps_denormals());
    const FloatMode nested;
    EXPECT_FALSE(keeps_denormals());
  }
  EXPECT_TRUE(keeps_denormals());
}

TEST(FloatMode, IsNotThatOfTheHostsParallelFor) {
  for (const auto run : {Pool::on_the_caller, Pool::on_a_thread}) {
    Pool pool;
    Workers workers(2, {run, &pool});
    const FloatMode mode;
    workers.run(2, [](int64_t) {});
    EXPECT_TRUE(pool.before);
    EXPECT_TRUE(pool.between);
    EXPECT_TRUE(pool.after);
    EXPECT_FALSE(keeps_denormals());
  }
}

TEST(HostsFloatMode, IsTheOneThatTheHostCalledWith) {
  {
    const HostsFloatMode nothing_to_undo;
    EXPECT_TRUE(keeps_denormals());
  }
  const FloatMode entry;
  {
    const FloatMode executor;
    const HostsFloatMode callback;
    EXPECT_TRUE(keeps_denormals());
    {
      const FloatMode called_back;
      EXPECT_FALSE(keeps_denormals());
      EXPECT_TRUE(call_host(keeps_denormals));
    }
    EXPECT_TRUE(keeps_denormals());
  }
  EXPECT_FALSE(keeps_denormals());
  const HostsFloatMode later;
  EXPECT_TRUE(keeps_denormals());
}

TEST(HostsFloatMode, IsTheDefaultOneOnAThreadOfOurs) {
  bool inherited = true, callback = false;
  const FloatMode mode;
  std::thread([&] {
    inherited = keeps_denormals();
    start_in_default_float_mode();
    const FloatMode computes;
    callback = call_host(keeps_denormals);
  }).join();
  EXPECT_FALSE(inherited) << "a thread starts in its parent's mode: without the first line the callback is in ours";
  EXPECT_TRUE(callback);
}

}  // namespace
}  // namespace st

#endif

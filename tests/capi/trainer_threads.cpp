// One handle and several threads: stop and cancel may come from anywhere at any time; every other call is BUSY (handles_in_use.cpp).
#include <atomic>
#include <thread>

#include "inside.h"
#include "small_run.h"

namespace {

using namespace st::test;

TEST(TrainerThreads, ACancelAnywhereInAStepLosesNothing) {
  const std::string text = text_file("cancel_anywhere.txt", 3000);
  Inside inside;
  SmallRun undisturbed(text), run(text, inside.options());
  inside.then(-1, {});
  ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  ASSERT_TRUE(works(st_trainer_step(undisturbed.trainer, 0, nullptr, nullptr)));
  const int64_t calls = inside.calls();
  ASSERT_GT(calls, 5) << "the step rarely asked the host for threads";

  int64_t cancelled = 0;
  const int64_t stride = std::max<int64_t>(1, calls / 17);
  for (int64_t call = 0; call < calls; call += stride) {
    const std::string before = run.digest();
    inside.then(call, [&] { EXPECT_TRUE(works(st_trainer_cancel(run.trainer))); });
    const st_status status = st_trainer_step(run.trainer, 0, nullptr, nullptr);
    if (status == ST_CANCELLED) {
      ++cancelled;
      EXPECT_EQ(run.digest(), before) << "cancelled in call " << call << " of " << calls;
      continue;
    }
    // Too late for this step, which is in its update: it completes, and the next one is cancelled.
    EXPECT_TRUE(works(status));
    ASSERT_TRUE(works(st_trainer_step(undisturbed.trainer, 0, nullptr, nullptr)));
    EXPECT_EQ(run.digest(), undisturbed.digest());
    inside.then(-1, {});
    EXPECT_TRUE(fails(ST_CANCELLED, st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  }
  EXPECT_GE(cancelled, calls / 3) << "of " << calls << " calls";
  inside.then(-1, {});
  for (int i = 0; i < 2; ++i)
    for (st_trainer* t : {static_cast<st_trainer*>(run.trainer), static_cast<st_trainer*>(undisturbed.trainer)})
      ASSERT_TRUE(works(st_trainer_step(t, 0, nullptr, nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest()) << "the same rows, the same random numbers";
}

TEST(TrainerThreads, ARunIsOneCallForOtherThreads) {
  SmallRun run(text_file("one_call.txt", 3000));
  const auto ask = [](void* user, const st_step_report*) {
    std::thread([user] {
      auto& r = *static_cast<SmallRun*>(user);
      const char* hex = nullptr;
      EXPECT_TRUE(fails(ST_BUSY, st_trainer_step(r.trainer, 0, nullptr, nullptr)));
      EXPECT_TRUE(fails(ST_BUSY, st_trainer_digest(r.trainer, &hex)));
      EXPECT_TRUE(fails(ST_BUSY, st_trainer_destroy(r.trainer)));
    }).join();
    return st_status{ST_OK};
  };
  EXPECT_TRUE(works(st_trainer_run(run.trainer, 3, ask, &run)));
  EXPECT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr))) << "the handle is free again";
}

/// A thread that trains until it is stopped.
class Runner {
 public:
  explicit Runner(st_trainer* trainer) : thread_([this, trainer] { status_ = st_trainer_run(trainer, int64_t{1} << 40, count, this); }) {}
  ~Runner() {
    if (thread_.joinable()) thread_.join();
  }
  void wait_for(int64_t steps) const {
    while (steps_ < steps) std::this_thread::yield();
  }
  st_status join() {
    thread_.join();
    return status_;
  }
  int64_t steps() const { return steps_; }

 private:
  static st_status count(void* user, const st_step_report* report) {
    static_cast<Runner*>(user)->steps_ = report->step;
    return ST_OK;
  }
  std::atomic<int64_t> steps_{0};
  st_status status_ = ST_INTERNAL;
  std::thread thread_;
};

TEST(TrainerThreads, StopFromAnotherThreadEndsTheRunAfterAWholeStep) {
  const std::string text = text_file("stop_thread.txt", 3000);
  SmallRun run(text), undisturbed(text);
  Runner runner(run.trainer);
  runner.wait_for(3);
  EXPECT_TRUE(works(st_trainer_stop(run.trainer)));
  EXPECT_EQ(runner.join(), ST_OK);
  ASSERT_TRUE(works(st_trainer_run(undisturbed.trainer, runner.steps(), nullptr, nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(TrainerThreads, CancelFromAnotherThreadLeavesTheLastWholeStep) {
  const std::string text = text_file("cancel_thread.txt", 3000);
  SmallRun run(text), undisturbed(text);
  for (int round = 0; round < 5; ++round) {
    Runner runner(run.trainer);
    runner.wait_for(2 * (round + 1));
    EXPECT_TRUE(works(st_trainer_cancel(run.trainer)));
    EXPECT_EQ(runner.join(), ST_CANCELLED);
    ASSERT_TRUE(works(st_trainer_run(undisturbed.trainer, runner.steps(), nullptr, nullptr)));
    EXPECT_EQ(run.digest(), undisturbed.digest()) << "round " << round;
  }
}

TEST(TrainerThreads, TrainersOfTheirOwnRunSideBySide) {
  const std::string text = text_file("side_by_side.txt", 3000);
  SmallRun a(text), b(text);
  std::thread other([&] { EXPECT_TRUE(works(st_trainer_run(a.trainer, 4, nullptr, nullptr))); });
  EXPECT_TRUE(works(st_trainer_run(b.trainer, 4, nullptr, nullptr)));
  other.join();
  EXPECT_EQ(a.digest(), b.digest());
}

TEST(TrainerThreads, HandlesComeAndGoFromManyThreads) {
  int64_t before = 0, after = 0;
  ASSERT_TRUE(works(st_live_handles(nullptr, &before)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) {
        st_recipe* recipe = nullptr;
        EXPECT_TRUE(works(st_recipe_create(nullptr, &recipe)));
        EXPECT_TRUE(works(st_recipe_set(recipe, "batch", "3")));
        EXPECT_TRUE(works(st_recipe_destroy(recipe)));
        EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_recipe_destroy(recipe)));
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(works(st_live_handles(nullptr, &after)));
  EXPECT_EQ(after, before);
}

}  // namespace

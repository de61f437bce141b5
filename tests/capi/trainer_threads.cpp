// One handle and several threads: stop and cancel come from anywhere at any time, everything else is BUSY. The host's parallel-for is our
// way into the middle of a step: what it does happens while a kernel runs.
#include <atomic>
#include <functional>
#include <thread>

#include "small_run.h"

namespace {

using namespace st::test;

/// A context whose parallel-for counts its calls and does something in one of them, from a thread of its own.
class Inside {
 public:
  Inside() : options_(filled(st_context_options_init)) {
    options_.parallel = [](void* user, int64_t n, st_task_fn task, void* arg) { static_cast<Inside*>(user)->run(n, task, arg); };
    options_.parallel_user = this;
  }
  const st_context_options* options() const { return &options_; }
  int64_t calls() const { return calls_; }
  /// In the `call`-th call from now, counted from 0.
  void then(int64_t call, std::function<void()> act) {
    calls_ = 0;
    at_ = call;
    act_ = std::move(act);
  }

 private:
  void run(int64_t n, st_task_fn task, void* arg) {
    if (calls_++ == at_) std::thread(act_).join();
    for (int64_t i = 0; i < n; ++i) task(arg, i);
  }
  st_context_options options_;
  int64_t calls_ = 0, at_ = -1;
  std::function<void()> act_;
};

TEST(TrainerThreads, ACancelAnywhereInAStepLosesNothing) {
  const std::string text = text_file("cancel_anywhere.txt", 3000);
  Inside inside;
  SmallRun undisturbed(text), run(text, inside.options());
  inside.then(-1, {});
  ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  ASSERT_TRUE(works(st_trainer_step(undisturbed.trainer, 0, nullptr, nullptr)));
  const int64_t calls = inside.calls();
  ASSERT_GT(calls, 10) << "the step never asked the host for threads";

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
    // Too late for this step, which is in its update: it ends whole, and the next one is cancelled.
    EXPECT_TRUE(works(status));
    ASSERT_TRUE(works(st_trainer_step(undisturbed.trainer, 0, nullptr, nullptr)));
    EXPECT_EQ(run.digest(), undisturbed.digest());
    inside.then(-1, {});
    EXPECT_TRUE(fails(ST_CANCELLED, st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  }
  EXPECT_GE(cancelled, 10);
  inside.then(-1, {});
  for (int i = 0; i < 2; ++i)
    for (st_trainer* t : {static_cast<st_trainer*>(run.trainer), static_cast<st_trainer*>(undisturbed.trainer)})
      ASSERT_TRUE(works(st_trainer_step(t, 0, nullptr, nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest()) << "the same rows, the same random numbers";
}

TEST(TrainerThreads, EveryOtherCallOfAnotherThreadIsBusyDuringAStep) {
  const std::string text = text_file("busy.txt", 3000);
  Inside inside;
  SmallRun undisturbed(text), run(text, inside.options());
  bool asked = false;
  inside.then(5, [&] {
    asked = true;
    auto evaluation = filled(st_evaluation_init);
    const char* answer = nullptr;
    std::vector<float> beta(16);
    const int64_t dims[] = {16};
    const st_view view = {ST_F32, 1, dims, nullptr, beta.data(), 64};
    st_trainer* second = nullptr;
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_step(run.trainer, 0, nullptr, nullptr), {"st_trainer_step", "another call"}));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_run(run.trainer, 9, nullptr, nullptr), {"st_trainer_run"}));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_evaluate(run.trainer, run.data, &evaluation), {"st_trainer_evaluate"}));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_digest(run.trainer, &answer)));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_plan(run.trainer, &answer)));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_explain(run.trainer, &answer)));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_log(run.trainer, "log.jsonl")));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_log_end(run.trainer, 0)));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_write_report(run.trainer, "report.html", nullptr)));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_destroy(run.trainer), {"st_trainer_destroy"}));
    EXPECT_TRUE(fails(ST_BUSY, st_model_get(run.model, "final_norm.beta", &view), {"st_model_get", "model"}));
    EXPECT_TRUE(fails(ST_BUSY, st_model_set(run.model, "final_norm.beta", &view), {"st_model_set"}));
    EXPECT_TRUE(fails(ST_BUSY, st_model_write_file(run.model, "weights.safetensors")));
    EXPECT_TRUE(fails(ST_BUSY, st_model_read_file(run.model, "weights.safetensors")));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_create(run.model, run.recipe, nullptr, &second), {"st_trainer_create", "model"}));
    int64_t rows = 0;
    EXPECT_TRUE(works(st_data_rows(run.data, &rows))) << "other handles are free";
  });
  ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  ASSERT_TRUE(works(st_trainer_step(undisturbed.trainer, 0, nullptr, nullptr)));
  EXPECT_TRUE(asked);
  EXPECT_EQ(run.digest(), undisturbed.digest());
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
  EXPECT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr))) << "free again";
}

/// A thread that trains until it is told not to.
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

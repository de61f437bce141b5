// Rows that the host is slow to make: whoever waits for them can be cancelled, an advance keeps to its time, and no row is lost.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

#include "sine_rows.h"

namespace {

using namespace st::test;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What the signal handler cancels, and the thread that it interrupts.
std::atomic<st_trainer*> signalled{nullptr};
pthread_t waiting;

/// A fill that is held until the test lets it go.
class LateRows : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    fill.before([this](int64_t) {
      std::unique_lock lock(mutex_);
      let_go_.wait(lock, [this] { return free_ || passes_ > 0; });
      --passes_;
      return st_status{ST_OK};
    });
    ASSERT_TRUE(works(fill.open(context, data.out())));
  }
  void TearDown() override { let_go(); }
  void let_go() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    let_go_.notify_all();
  }
  /// All fills but the next few.
  void hold(int passes) {
    const std::lock_guard lock(mutex_);
    free_ = false;
    passes_ = passes;
  }

  HeldContext context;
  SineFill fill;
  HeldData data;

 private:
  std::mutex mutex_;
  std::condition_variable let_go_;
  bool free_ = false;
  int passes_ = 0;
};

using Cancel = std::function<void(st_context*, st_trainer*)>;
using Wait = std::function<st_status(st_trainer*)>;

const Cancel kCancels[] = {[](st_context*, st_trainer* trainer) { EXPECT_EQ(st_trainer_cancel(trainer), ST_OK); },
                           [](st_context* context, st_trainer*) { EXPECT_EQ(st_context_cancel(context), ST_OK); },
                           [](st_context*, st_trainer* trainer) {
                             signalled = trainer;
                             EXPECT_EQ(pthread_kill(waiting, SIGUSR1), 0);
                           }};
const Wait kWaits[] = {[](st_trainer* trainer) { return st_trainer_step(trainer, 0, nullptr, nullptr); },
                       [](st_trainer* trainer) { return st_trainer_run(trainer, 99, nullptr, nullptr); },
                       [](st_trainer* trainer) {
                         int32_t done = 0;
                         return st_trainer_advance(trainer, 0, nullptr, INT64_MAX, &done, nullptr);
                       }};

TEST_F(LateRows, AreWaitedForUntilACancel) {
  const auto before = std::signal(SIGUSR1, [](int) { st_trainer_cancel(signalled); });
  waiting = pthread_self();
  const std::string wanted = undisturbed_digest(context, 2);
  int in_time = 0;
  for (const Cancel& cancel : kCancels)
    for (const Wait& wait : kWaits) {
      hold(in_time++ % 2);  // the first micro-batch waits, or the second
      SineTrainer run(context, data);
      for (int again = 0; again < 2; ++again) {  // the second waits for the same fill
        std::atomic<steady_clock::duration> cancelled{};
        std::thread other([&] {
          std::this_thread::sleep_for(milliseconds(10));
          cancelled = steady_clock::now().time_since_epoch();
          cancel(context, run.trainer);
        });
        EXPECT_TRUE(fails(ST_CANCELLED, wait(run.trainer), {"cancelled"}));
        const auto end = steady_clock::now().time_since_epoch();
        other.join();
        EXPECT_LT(end - cancelled.load(), milliseconds(1000));
      }
      let_go();
      for (int i = 0; i < 2; ++i) ASSERT_TRUE(works(run.step()));
      EXPECT_EQ(run.digest(), wanted) << "the rows of a step that was cancelled are the next one's";
    }
  std::signal(SIGUSR1, before);
}

TEST_F(LateRows, AreWaitedForNoLongerThanAnAdvanceMayTake) {
  SineTrainer run(context, data);
  int32_t done = 1;
  for (int i = 0; i < 5; ++i) {
    const auto start = steady_clock::now();
    ASSERT_TRUE(works(st_trainer_advance(run.trainer, 0, nullptr, 2'000'000, &done, nullptr)));
    EXPECT_EQ(done, 0);
    EXPECT_GE(steady_clock::now() - start, milliseconds(2)) << "it gave up at once";
    EXPECT_LT(steady_clock::now() - start, milliseconds(1000));  // 2 on an idle machine
  }
  let_go();
  for (int step = 0; step < 2; ++step)
    for (done = 0; done == 0;) ASSERT_TRUE(works(st_trainer_advance(run.trainer, 0, nullptr, 1'000'000, &done, nullptr)));
  EXPECT_EQ(run.digest(), undisturbed_digest(context, 2));
}

TEST_F(LateRows, AreWaitedForByADestroyWhichNeedsTheHostsMemoryNoMoreThen) {
  SineTrainer run(context, data);
  while (fill.calls() == 0) std::this_thread::yield();
  std::atomic<bool> destroyed{false};
  std::thread other([&] {
    run.trainer.reset();
    destroyed = true;
  });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(destroyed);
  let_go();
  other.join();
  EXPECT_TRUE(destroyed);
}

}  // namespace

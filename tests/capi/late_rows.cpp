// Rows that the host makes slowly: every wait for them can be cancelled, an advance keeps its time limit, and no row is lost.
#include <functional>

#include "late_fill.h"

namespace {

using namespace st::test;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

class LateRows : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    ASSERT_TRUE(works(fill.open(context, data.out())));
  }
  void TearDown() override { fill.let_go(); }

  HeldContext context;
  LateFill fill;
  HeldData data;
};

using Wait = std::function<st_status(st_trainer*)>;

const Wait kWaits[] = {[](st_trainer* trainer) { return st_trainer_step(trainer, 0, nullptr, nullptr); },
                       [](st_trainer* trainer) { return st_trainer_run(trainer, 99, nullptr, nullptr); },
                       [](st_trainer* trainer) {
                         int32_t done = 0;
                         return st_trainer_advance(trainer, 0, nullptr, INT64_MAX, &done, nullptr);
                       }};

TEST_F(LateRows, AreWaitedForUntilACancel) {
  const std::string wanted = undisturbed_digest(context, 2);
  int in_time = 0;
  for (const CancelBy by : kAllCancels)
    for (const Wait& wait : kWaits) {
      fill.hold(in_time++ % 2);  // the first micro-batch waits, or the second
      SineTrainer run(context, data);
      for (int again = 0; again < 2; ++again) {  // the second attempt waits for the same fill
        LateCancel cancel(by, context, run.trainer, [this] { return fill.is_late(); });
        EXPECT_TRUE(fails(ST_CANCELLED, wait(run.trainer), {"cancelled"}));
        EXPECT_LT(cancel.age(), milliseconds(1000));
      }
      fill.let_go();
      for (int i = 0; i < 2; ++i) ASSERT_TRUE(works(run.step()));
      EXPECT_EQ(run.digest(), wanted) << "the next step gets the rows of the cancelled one";
    }
}

TEST_F(LateRows, AreWaitedForNoLongerThanAnAdvanceMayTake) {
  SineTrainer run(context, data);
  int32_t done = 1;
  for (int i = 0; i < 5; ++i) {
    const auto start = steady_clock::now();
    ASSERT_TRUE(works(st_trainer_advance(run.trainer, 0, nullptr, 2'000'000, &done, nullptr)));
    EXPECT_EQ(done, 0);
    EXPECT_GE(steady_clock::now() - start, milliseconds(2)) << "it stopped waiting at once";
    EXPECT_LT(steady_clock::now() - start, milliseconds(1000));  // 2 on an idle machine
  }
  fill.let_go();
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
  fill.let_go();
  other.join();
  EXPECT_TRUE(destroyed);
}

}  // namespace

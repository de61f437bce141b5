// An evaluation whose rows the host makes slowly: it can be cancelled at any time, and the fill that it abandons does no harm.
#include "late_fill.h"

namespace {

using namespace st::test;
using std::chrono::milliseconds;

constexpr int kBatches = 3;  // 10 rows by 4

st_status evaluate(st_trainer* trainer, st_data* data, double* loss = nullptr) {
  auto report = filled(st_evaluation_init);
  const st_status status = st_trainer_evaluate(trainer, data, &report);
  if (loss != nullptr) *loss = report.loss;
  return status;
}

class LateEvaluation : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    ASSERT_TRUE(works(fill.open(context, data.out())));
    ASSERT_TRUE(works(plain.open(context, prompt.out())));
    for (st_named_view& view : rows.views) view.view.dims = eight;
    run = std::make_unique<SineTrainer>(context, nullptr);
  }
  void TearDown() override { fill.let_go(); }

  st_status step(SineTrainer& trainer) { return trainer.step(2, rows.views); }
  void cancel_an_evaluation(CancelBy by = CancelBy::trainer) {
    LateCancel cancel(by, context, run->trainer, [this] { return fill.is_late(); });
    EXPECT_TRUE(fails(ST_CANCELLED, evaluate(run->trainer, data), {"cancelled"}));
    EXPECT_LT(cancel.age(), milliseconds(1000));  // 1 on an idle machine
  }
  int64_t allocated() { return memory_of(context).allocated_bytes; }
  /// The loss for the trainer's weights on rows that are not late.
  double undisturbed_loss() {
    double loss = 0;
    EXPECT_TRUE(works(evaluate(run->trainer, prompt, &loss)));
    return loss;
  }

  HeldContext context;
  LateFill fill;
  SineFill plain;
  HeldData data, prompt;
  SineRows rows;
  const int64_t eight[2] = {8, 1};
  std::unique_ptr<SineTrainer> run;
};

TEST_F(LateEvaluation, EndsAtACancelAndTheNextOneIsRight) {
  const double wanted = undisturbed_loss();
  const std::vector<int64_t> all = plain.asked();
  for (const CancelBy by : kAllCancels)
    for (int made = 0; made < kBatches; ++made) {
      const int64_t calls = fill.calls();
      fill.hold(made);  // the batch after these is late
      cancel_an_evaluation(by);
      EXPECT_EQ(fill.calls() - calls, made + 1);
      const size_t asked_before = fill.asked().size();
      fill.let_go();
      double loss = 0;
      ASSERT_TRUE(works(evaluate(run->trainer, data, &loss)));
      EXPECT_EQ(loss, wanted);
      const std::vector<int64_t> asked = fill.asked();
      EXPECT_EQ(std::vector<int64_t>(asked.begin() + static_cast<int64_t>(asked_before), asked.end()), all);
    }
}

TEST_F(LateEvaluation, LeavesTheTrainerToOtherCallsMeanwhile) {
  SineTrainer undisturbed(context, nullptr);
  cancel_an_evaluation();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(works(step(*run)));
    ASSERT_TRUE(works(step(undisturbed)));
    EXPECT_EQ(run->digest(), undisturbed.digest());
    double loss = 0, wanted = 1;
    ASSERT_TRUE(works(evaluate(run->trainer, prompt, &loss)));
    ASSERT_TRUE(works(evaluate(undisturbed.trainer, prompt, &wanted)));
    EXPECT_EQ(loss, wanted);
    ASSERT_TRUE(works(st_context_trim(context)));
  }
  EXPECT_EQ(fill.calls(), 1);
}

TEST_F(LateEvaluation, OfTheSameDataWaitsForTheFillThatWasLeftBehind) {
  cancel_an_evaluation();
  const int64_t buffers = allocated();
  for (int again = 0; again < 5; ++again) cancel_an_evaluation(kAllCancels[again % 3]);
  EXPECT_EQ(allocated(), buffers) << "any number of cancels leaves one fill behind";
  fill.let_go();
  double loss = 0;
  ASSERT_TRUE(works(evaluate(run->trainer, data, &loss)));
  EXPECT_EQ(loss, undisturbed_loss());
}

TEST_F(LateEvaluation, IsWaitedForByTheDestroyOfItsTrainerWhichNeedsTheHostsMemoryNoMoreThen) {
  cancel_an_evaluation();
  std::atomic<bool> destroyed{false};
  std::thread other([&] {
    run->trainer.reset();
    destroyed = true;
  });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(destroyed);
  fill.let_go();
  other.join();
  data.reset();
  EXPECT_EQ(fill.released(), 1);
}

TEST_F(LateEvaluation, GivesDataAndBuffersBackWhenTheFillReturns) {
  ASSERT_TRUE(works(evaluate(run->trainer, prompt)));  // its plans are kept
  const int64_t before = allocated();
  cancel_an_evaluation();
  EXPECT_GT(allocated(), before);
  data.reset();
  EXPECT_EQ(fill.released(), 0);
  fill.let_go();
  EXPECT_TRUE(comes_true([&] { return fill.released() == 1; }));
  EXPECT_TRUE(comes_true([&] { return allocated() == before; }));
}

TEST_F(LateEvaluation, IsBusyInTheFillThatWasLeftBehindWhichMayDestroyTheTrainer) {
  std::atomic<bool> cancelled{false};
  std::atomic<st_status> evaluated{ST_INTERNAL}, destroyed{ST_INTERNAL};
  st_trainer* const trainer = run->trainer;
  SineFill guest;
  HeldData own;
  guest.before([&](int64_t) {
    if (!comes_true([&] { return cancelled.load(); })) return ST_TIMEOUT;
    evaluated = evaluate(trainer, own);
    destroyed = st_trainer_destroy(trainer);
    return ST_OK;
  });
  ASSERT_TRUE(works(guest.open(context, own.out())));
  LateCancel cancel(CancelBy::trainer, context, trainer, [&] { return guest.calls() > 0; });
  EXPECT_TRUE(fails(ST_CANCELLED, evaluate(trainer, own)));
  *run->trainer.out() = nullptr;  // the callback's from here on
  cancelled = true;
  EXPECT_TRUE(comes_true([&] { return destroyed == ST_OK; }));
  EXPECT_EQ(evaluated, ST_BUSY);
  own.reset();
  EXPECT_TRUE(comes_true([&] { return guest.released() == 1; }));
}

TEST_F(LateEvaluation, MayDestroyItsTrainerInTheReleaseOfItsData) {
  struct Host {
    std::atomic<bool> begun{false}, let_go{false}, done{false};
    st_trainer* trainer = nullptr;
    st_status destroyed = ST_INTERNAL;
  } host;
  host.trainer = run->trainer;
  const st_fill_fn wait = [](void* user, int64_t, const int64_t*, int64_t, const st_view*) {
    auto& self = *static_cast<Host*>(user);
    self.begun = true;
    return comes_true([&] { return self.let_go.load(); }) ? st_status{ST_OK} : st_status{ST_TIMEOUT};
  };
  const st_release_fn destroy = [](void* user) {
    auto& self = *static_cast<Host*>(user);
    self.destroyed = st_trainer_destroy(self.trainer);
    self.done = true;
  };
  auto own = hold<HeldData>(st_data_callback, context, kSineRows, 2, kSineFields, wait, destroy, &host);
  LateCancel cancel(CancelBy::trainer, context, run->trainer, [&] { return host.begun.load(); });
  EXPECT_TRUE(fails(ST_CANCELLED, evaluate(run->trainer, own)));
  *run->trainer.out() = nullptr;
  own.reset();
  host.let_go = true;
  EXPECT_TRUE(comes_true([&] { return host.done.load(); }));
  EXPECT_EQ(host.destroyed, ST_OK);
}

TEST_F(LateEvaluation, WhoseFillFailsLaterThanItsFirstBatchKeepsNothing) {
  SineFill failing;
  failing.before([](int64_t call) { return call == 1 ? ST_TIMEOUT : ST_OK; });
  HeldData own;
  ASSERT_TRUE(works(failing.open(context, own.out())));
  EXPECT_TRUE(fails(ST_CALLBACK, evaluate(run->trainer, own), {"fill returned 10", "4 rows", "row 4"}));
  double loss = 0;
  ASSERT_TRUE(works(evaluate(run->trainer, own, &loss)));
  EXPECT_EQ(loss, undisturbed_loss());
  own.reset();
  EXPECT_EQ(failing.released(), 1);
}

}  // namespace

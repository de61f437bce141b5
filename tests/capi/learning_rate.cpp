// The learning rate as the host's function gives it: errors, ownership, calls from inside. Values: tests/unit/train/learning_rate_test.cpp.
#include <cmath>
#include <vector>

#include "small_run.h"

namespace {

using namespace st::test;

/// The behaviour of the host's function, and its recorded arguments.
struct Rate {
  st_status status = ST_OK;
  double lr = 0.125;
  std::vector<int64_t> asked = {};
  int released = 0;
  void (*act)(Rate&) = nullptr;
  SineRun* run = nullptr;

  static st_status call(void* user, int64_t k, double* lr) {
    auto& rate = *static_cast<Rate*>(user);
    rate.asked.push_back(k);
    *lr = rate.lr;
    if (rate.act != nullptr) rate.act(rate);
    return rate.status;
  }
  static void release(void* user) { ++static_cast<Rate*>(user)->released; }
};

double rate_of_a_step(SineRun& run) {
  auto report = filled(st_step_report_init);
  EXPECT_TRUE(works(run.step(&report)));
  return report.lr;
}

TEST(LearningRates, OfTheHostServeItsOwnLossToo) {
  SineRun run;
  Rate rate;
  ASSERT_TRUE(works(st_trainer_set_schedule(run.trainer, Rate::call, nullptr, &rate)));
  const SineHalf half(run, 0);
  for (int pair = 0; pair < 2; ++pair) {
    ASSERT_TRUE(works(forward(run.trainer, 2, half.views)));
    ASSERT_TRUE(works(st_trainer_backward(run.trainer, 0, nullptr)));
  }
  const auto report = filled(st_step_report_init, st_trainer_apply, run.trainer);
  EXPECT_EQ(report.lr, 0.125);
  EXPECT_EQ(rate.asked, (std::vector<int64_t>{0}));
}

TEST(LearningRates, OfTheHostThatFailLoseNothing) {
  SineRun run, undisturbed;
  for (SineRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(r->step()));
  const std::string before = run.digest();
  Rate rate;
  ASSERT_TRUE(works(st_trainer_set_schedule(run.trainer, Rate::call, nullptr, &rate)));
  rate.status = 42;
  EXPECT_TRUE(fails(ST_CALLBACK, run.step(), {"learning rate", "42", "1 successful"}));
  rate.status = ST_OK;
  for (const double wrong : {std::nan(""), HUGE_VAL, -0.5}) {
    rate.lr = wrong;
    EXPECT_TRUE(fails(ST_CALLBACK, run.step(), {"learning rate", "finite number"}));
    int32_t done = 0;
    EXPECT_TRUE(fails(ST_CALLBACK, st_trainer_advance(run.trainer, 2, run.views, 0, &done, nullptr), {"learning rate"}));
    EXPECT_TRUE(fails(ST_CALLBACK, forward(run.trainer, 2, run.views), {"learning rate"}));
  }
  EXPECT_EQ(run.digest(), before);
  ASSERT_TRUE(works(st_trainer_set_schedule(run.trainer, nullptr, nullptr, nullptr)));
  for (SineRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(r->step()));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(LearningRates, OfTheHostAreReleasedOnceAndNotWhenTheyWereRefused) {
  Rate first, second, refused;
  {
    SineRun run;
    ASSERT_TRUE(works(st_trainer_set_schedule(run.trainer, Rate::call, Rate::release, &first)));
    ASSERT_TRUE(works(st_trainer_set_schedule(run.trainer, Rate::call, Rate::release, &second)));
    EXPECT_EQ(first.released, 1);
    EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_trainer_set_schedule(nullptr, Rate::call, Rate::release, &refused)));
    EXPECT_EQ(second.released, 0);
  }
  EXPECT_EQ(first.released, 1);
  EXPECT_EQ(second.released, 1);
  EXPECT_EQ(refused.released, 0);
}

TEST(LearningRates, AReleaseMayUseTheTrainer) {
  struct Last {
    SineRun run;
    bool stepped = false;
  } last;
  const auto step = [](void* user) {
    auto& l = *static_cast<Last*>(user);
    l.stepped = l.run.step() == ST_OK;
  };
  ASSERT_TRUE(works(st_trainer_set_schedule(
      last.run.trainer, [](void*, int64_t, double* lr) { return *lr = 0, st_status{ST_OK}; }, step, &last)));
  ASSERT_TRUE(works(st_trainer_set_schedule(last.run.trainer, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(last.stepped);
}

TEST(LearningRates, TheTrainerIsBusyWhileTheHostIsAsked) {
  SineRun run;
  Rate rate;
  rate.run = &run;
  rate.act = [](Rate& r) {
    const char* text = nullptr;
    EXPECT_TRUE(fails(ST_BUSY, r.run->step(), {"st_trainer_step"}));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_set_schedule(r.run->trainer, nullptr, nullptr, nullptr), {"st_trainer_set_schedule"}));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_get(r.run->trainer, "lr", &text), {"st_trainer_get"}));
    EXPECT_TRUE(fails(ST_BUSY, st_trainer_destroy(r.run->trainer), {"st_trainer_destroy"}));
    double lr = 0;
    const auto other = hold<HeldSchedule>(st_schedule_create, nullptr);
    EXPECT_TRUE(works(st_schedule_at(other, 0, &lr)));
  };
  ASSERT_TRUE(works(st_trainer_set_schedule(run.trainer, Rate::call, nullptr, &rate)));
  EXPECT_EQ(rate_of_a_step(run), 0.125);
}

}  // namespace

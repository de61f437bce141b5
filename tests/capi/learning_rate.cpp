// The learning rate of a trainer's steps as the host reads and sets it.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <vector>

#include "small_run.h"

namespace {

using namespace st::test;

/// Sets the final norm's beta to infinity, so that no gradient is finite, or restores it.
class Overflow {
 public:
  explicit Overflow(st_model* model) : model_(model) {
    EXPECT_TRUE(works(st_model_get(model_, "final_norm.beta", &view_)));
    const std::vector<float> kept = beta_;
    beta_.assign(beta_.size(), std::numeric_limits<float>::infinity());
    EXPECT_TRUE(works(st_model_set(model_, "final_norm.beta", &view_)));
    beta_ = kept;
  }
  ~Overflow() { EXPECT_TRUE(works(st_model_set(model_, "final_norm.beta", &view_))); }
  Overflow(const Overflow&) = delete;
  Overflow& operator=(const Overflow&) = delete;

 private:
  st_model* model_;
  std::vector<float> beta_ = std::vector<float>(16);
  const int64_t dims_[1] = {16};
  const st_view view_ = {ST_F32, 1, dims_, nullptr, beta_.data(), 64};
};

/// In the form of a step's log line.
std::string logged(double lr) {
  char text[64];
  std::snprintf(text, sizeof text, "\"lr\":%.9g,", lr);
  return text;
}

// T14 on one rank.
TEST(LearningRates, OfTheLogAreThoseOfTheTableWhateverIsSkipped) {
  constexpr const char* kKeys = R"("lr_schedule": "cosine", "lr": 0.01, "warmup": 3, "lr_steps": 10, "lr_min": 0.001)";
  SmallRun run(text_file("rates.txt", 3000), nullptr, (std::string(R"({"batch": 3, )") + kKeys + "}").c_str());
  const auto table = hold<HeldSchedule>(st_schedule_create, (std::string("{") + kKeys + "}").c_str());
  const std::string path = file_of("rates.jsonl", "");
  ASSERT_TRUE(works(st_trainer_log(run.trainer, path.c_str())));
  std::vector<int64_t> before;  // successful steps before each attempt
  int64_t successful = 0;
  for (int attempt = 1; attempt <= 14; ++attempt) {
    auto report = filled(st_step_report_init);
    before.push_back(successful);
    if (attempt % 5 == 2) {
      const Overflow overflow(run.model);
      ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, &report)));
      EXPECT_EQ(report.skipped, 1);
    } else {
      ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, &report)));
      EXPECT_EQ(report.skipped, 0);
      ++successful;
    }
  }
  ASSERT_TRUE(works(st_trainer_log_end(run.trainer, 0)));
  std::ifstream log(path);
  std::string line;
  for (const int64_t k : before) {
    ASSERT_TRUE(std::getline(log, line));
    const auto lr = asked<double>(st_schedule_at, table, k);
    EXPECT_NE(line.find(logged(lr)), std::string::npos) << logged(lr) << " in " << line;
  }
  EXPECT_EQ(successful, 11);
}

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

TEST(LearningRates, OfTheHostAreAskedForOnceAStep) {
  SineRun run;
  Rate rate;
  ASSERT_TRUE(works(st_trainer_set_schedule(run.trainer, Rate::call, Rate::release, &rate)));
  EXPECT_EQ(rate_of_a_step(run), 0.125);
  run.x[3] = std::numeric_limits<float>::infinity();  // skipped
  rate_of_a_step(run);
  run.x[3] = 0.5F;
  rate.lr = 0.25;
  EXPECT_EQ(rate_of_a_step(run), 0.25);
  EXPECT_EQ(rate.asked, (std::vector<int64_t>{0, 1, 1}));
  ASSERT_TRUE(works(st_trainer_set(run.trainer, "lr", "0.75")));  // the recipe's rate, which is not used now
  int32_t done = 0;
  while (done == 0) ASSERT_TRUE(works(st_trainer_advance(run.trainer, 2, run.views, 0, &done, nullptr)));
  EXPECT_EQ(rate.asked.size(), 4U) << "one step in any number of slices";
  EXPECT_EQ(rate.released, 0);
  ASSERT_TRUE(works(st_trainer_set_schedule(run.trainer, nullptr, nullptr, nullptr)));
  EXPECT_EQ(rate.released, 1);
  EXPECT_EQ(rate_of_a_step(run), 0.75);
  EXPECT_EQ(rate.asked.size(), 4U);
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

TEST(LearningRates, KeysAreChangedFromTheNextStepOnOrNotAtAll) {
  SineRun run;
  ASSERT_TRUE(works(st_trainer_set(run.trainer, "lr_steps", "4")));
  ASSERT_TRUE(works(st_trainer_set(run.trainer, "lr", "0.5")));
  ASSERT_TRUE(works(st_trainer_set(run.trainer, "lr_schedule", "\"linear\"")));
  EXPECT_EQ(rate_of_a_step(run), 0.5);
  EXPECT_EQ(rate_of_a_step(run), 0.375);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_set(run.trainer, "lr_steps", "0"), {"linear", "lr_steps", "unset"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_set(run.trainer, "warmup", "4"), {"warmup 4", "lr_steps 4"}));
  EXPECT_EQ(text_of(st_trainer_get, run.trainer, "lr_steps"), "4");
  EXPECT_EQ(rate_of_a_step(run), 0.25);
}

}  // namespace

// st_schedule alone: the learning rate as a function of successful steps.
#include "held.h"

namespace {

using namespace st::test;

st_status create(const char* json) {
  HeldSchedule schedule;
  const st_status status = st_schedule_create(json, schedule.out());
  EXPECT_EQ(status == ST_OK, static_cast<st_schedule*>(schedule) != nullptr);
  return status;
}

double at(st_schedule* schedule, int64_t step) { return asked<double>(st_schedule_at, schedule, step); }

TEST(Schedules, AreFunctionsOfSuccessfulSteps) {
  const auto schedule =
      hold<HeldSchedule>(st_schedule_create, R"({"schedule": "linear", "lr": 0.5, "warmup": 2, "lr_steps": 6, "lr_min": 0.25})");
  const double wanted[] = {0.25, 0.5, 0.5, 0.4375, 0.375, 0.3125, 0.25, 0.25};
  for (int64_t step = 7; step >= 0; --step) EXPECT_EQ(at(schedule, step), wanted[step]) << step;
  EXPECT_EQ(at(schedule, INT64_MAX), 0.25);
  double lr = -1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_schedule_at(schedule, -1, &lr), {"st_schedule_at", "-1", "0 or more"}));
  EXPECT_EQ(lr, -1);
}

TEST(Schedules, HaveTheRecipesDefaults) {
  HeldSchedule schedule;
  for (const char* json : {static_cast<const char*>(nullptr), "", "{}"}) {
    ASSERT_TRUE(works(st_schedule_create(json, schedule.out())));
    EXPECT_EQ(at(schedule, 0), 1e-3 / 20);
    EXPECT_EQ(at(schedule, 20), 1e-3);
    schedule.reset();
  }
}

TEST(Schedules, RefuseWhatIsWrongAndSayHowToPutItRight) {
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"schedul": "cosine"})"), {"unknown key \"schedul\"", "did you mean \"schedule\"?"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"weight_decay": 0})"), {"unknown key \"weight_decay\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"schedule": "table", "lr_table": "0:1 9:2 5:3"})"), {"lr_table", "step 5", "step 9"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create("cosine"), {"schedule"}));
}

}  // namespace

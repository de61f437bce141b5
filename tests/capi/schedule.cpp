// st_schedule: the learning rate as a function of successful steps, by itself.
#include "held.h"

namespace {

using namespace st::test;

st_status create(const char* json) {
  HeldSchedule schedule;
  const st_status status = st_schedule_create(json, schedule.out());
  EXPECT_EQ(status == ST_OK, static_cast<st_schedule*>(schedule) != nullptr);
  return status;
}

double at(st_schedule* schedule, int64_t step) {
  double lr = -1;
  EXPECT_TRUE(works(st_schedule_at(schedule, step, &lr)));
  return lr;
}

TEST(Schedules, AreFunctionsOfSuccessfulSteps) {
  HeldSchedule schedule;
  ASSERT_TRUE(
      works(st_schedule_create(R"({"schedule": "linear", "lr": 0.5, "warmup": 2, "lr_steps": 6, "lr_min": 0.25})", schedule.out())));
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

TEST(Schedules, OfAllKindsAreMade) {
  for (const char* json :
       {R"({"lr_schedule": "constant"})", R"({"schedule": "cosine", "lr_steps": 30, "lr_cycles": 2, "lr_cycle_growth": 2})",
        R"({"schedule": "polynomial", "lr_steps": 30, "lr_power": 2})", R"({"schedule": "inverse_sqrt", "lr_min": 1e-4})",
        R"({"schedule": "wsd", "lr_steps": 30, "lr_decay_steps": 5, "lr_decay": "cosine"})",
        R"({"schedule": "one_cycle", "lr_steps": 30, "lr_pct_start": 0.25, "lr_div_factor": 9, "lr_final_div_factor": 99})",
        R"({"schedule": "table", "lr_table": "0:1e-3 100:5e-4"})"})
    EXPECT_TRUE(works(create(json))) << json;
}

TEST(Schedules, RefuseWhatIsWrongAndSayHowToPutItRight) {
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"schedul": "cosine"})"), {"unknown key \"schedul\"", "did you mean \"schedule\"?"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"weight_decay": 0})"), {"unknown key \"weight_decay\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"schedule": "cosine"})"), {"cosine", "lr_steps", "unset"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"schedule": "linear", "warmup": 20, "lr_steps": 20})"), {"warmup 20", "lr_steps 20"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"schedule": "wsd", "warmup": 20, "lr_steps": 30, "lr_decay_steps": 11})"), {"11", "20", "30"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"schedule": "table", "lr_table": "0:1 9:2 5:3"})"), {"lr_table", "step 5", "step 9"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"lr": "fast"})"), {"lr is a number", "fast"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(R"({"lr_pct_start": 1})"), {"lr_pct_start is 1", "(0,1)"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create("cosine"), {"schedule"}));
}

}  // namespace

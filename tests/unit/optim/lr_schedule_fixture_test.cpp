// Schedules against PyTorch's numbers: fixtures/lr_schedules.json, written by make_lr_schedules.py in that folder.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "optim/lr_schedule.h"

namespace st {
namespace {

Json schedule_fixture() {
  std::ifstream file(ST_FIXTURES "/lr_schedules.json");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), "lr_schedules.json");
}

void take(LrScheduleOptions& options, const std::string& key, const Json& value) {
  if (key == "lr_schedule") options.lr_schedule = value.text();
#define ST_TAKE(name, type) else if (key == #name) options.name = static_cast<type>(value.number());
  ST_TAKE(lr, double)
  ST_TAKE(warmup, int64_t)
  ST_TAKE(lr_steps, int64_t)
  ST_TAKE(lr_min, double)
  ST_TAKE(lr_power, double)
  ST_TAKE(lr_cycles, int64_t)
  ST_TAKE(lr_cycle_growth, int64_t)
  ST_TAKE(lr_pct_start, double)
  ST_TAKE(lr_div_factor, double)
  ST_TAKE(lr_final_div_factor, double)
#undef ST_TAKE
  else ADD_FAILURE() << "the fixture has a key that this test does not know: " << key;
}

// 1e-12 relative, plus 1e-16 of the largest rate (half an ulp of it): PyTorch computes most rates from the previous one by a factor, so
// near 0 only its accumulated rounding is left.
TEST(LrScheduleFixture, SchedulesEqualPyTorchsInEveryStep) {
  int compared = 0;
  const Json read = schedule_fixture();
  for (const Json& one : read.find("cases")->list()) {
    LrScheduleOptions options;
    for (const auto& [key, value] : one.find("keys")->members()) take(options, key, value);
    const LrSchedule schedule(options);
    int64_t k = 0;
    for (const Json& rate : one.find("rates")->list()) {
      const double wanted = rate.number();
      EXPECT_NEAR(schedule.at(k), wanted, 1e-12 * wanted + 1e-16 * options.lr) << one.find("name")->text() << ", step " << k;
      ++k;
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace st

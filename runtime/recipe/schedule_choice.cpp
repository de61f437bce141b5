#include "recipe/schedule_choice.h"

#include <algorithm>

#include "base/error.h"
#include "base/heap.h"
#include "recipe/part_recipe.h"

namespace st {
namespace {

#define ST_SCHEDULE_KEYS(key)                                                                                                          \
  key(lr_schedule) key(lr) key(warmup) key(lr_steps) key(lr_min) key(lr_power) key(lr_cycles) key(lr_cycle_growth) key(lr_decay_steps) \
      key(lr_decay) key(lr_pct_start) key(lr_div_factor) key(lr_final_div_factor) key(lr_table)

}  // namespace

const std::vector<std::string>& schedule_keys() {
#define ST_NAME(key) #key,
  static const auto keys = once_for_the_process([] { return std::vector<std::string>{ST_SCHEDULE_KEYS(ST_NAME)}; });
#undef ST_NAME
  return keys;
}

bool is_schedule_key(std::string_view key) { return std::ranges::find(schedule_keys(), key) != schedule_keys().end(); }

LrSchedule schedule_choice(const Recipe& recipe) {
  LrScheduleOptions options;
#define ST_TAKE(key) options.key = recipe.key;
  ST_SCHEDULE_KEYS(ST_TAKE)
#undef ST_TAKE
  if (std::ranges::find(recipe.given, "warmup") != recipe.given.end()) return LrSchedule(options);
  try {
    return LrSchedule(options);
  } catch (const Error&) {
    LrScheduleOptions shorter = options;
    shorter.warmup = std::min(options.warmup, options.lr_steps / 10);
    try {
      return LrSchedule(shorter);
    } catch (const Error&) {  // the warm-up was not the reason
    }
    throw;
  }
}

LrSchedule schedule_from(std::string_view json) {
  Recipe recipe;
  merge_part(recipe, {.part = "schedule", .keys = schedule_keys(), .short_name = "schedule", .stands_for = "lr_schedule"}, json);
  return schedule_choice(recipe);
}

}  // namespace st

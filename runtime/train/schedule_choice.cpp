#include "train/schedule_choice.h"

#include <algorithm>

#include "base/error.h"
#include "base/heap.h"
#include "base/json.h"

namespace st {
namespace {

#define ST_SCHEDULE_KEYS(key)                                                                                                          \
  key(lr_schedule) key(lr) key(warmup) key(lr_steps) key(lr_min) key(lr_power) key(lr_cycles) key(lr_cycle_growth) key(lr_decay_steps) \
      key(lr_decay) key(lr_pct_start) key(lr_div_factor) key(lr_final_div_factor) key(lr_table)

constexpr std::string_view kRecipe = "recipe: ", kSchedule = "schedule: ";

/// Recipe::set says whose key was wrong: here there is no recipe.
void set_of_schedule(Recipe& recipe, const std::string& key, const std::string& value) {
  try {
    recipe.set(key, value);
  } catch (const Error& error) {
    const std::string& message = error.message();
    if (!message.starts_with(kRecipe)) throw;
    fail(error.code(), text(kSchedule, std::string_view(message).substr(kRecipe.size())));
  }
}

void refuse_key(const std::string& key) {
  std::vector<std::string> names = schedule_keys();
  names.emplace_back("schedule");
  const std::string near = nearest(key, names);
  fail(Code::invalid_argument, text(kSchedule, "unknown key \"", key, "\"", near.empty() ? "" : text("; did you mean \"", near, "\"?")));
}

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
  return LrSchedule(options);
}

LrSchedule schedule_from(std::string_view json) {
  Recipe recipe;
  if (json.empty()) return schedule_choice(recipe);
  const Json object = parse_json(json, "schedule");
  check(object.is(Json::Kind::object), kSchedule, "a JSON object is needed, got ", object.dump());
  check(object.find("schedule") == nullptr || object.find("lr_schedule") == nullptr, kSchedule,
        "schedule and lr_schedule are one key; give one of them");
  for (const auto& [name, value] : object.members()) {
    const std::string key = name == "schedule" ? "lr_schedule" : name;
    if (!is_schedule_key(key)) refuse_key(name);
    set_of_schedule(recipe, key, value.dump());
  }
  return schedule_choice(recipe);
}

}  // namespace st

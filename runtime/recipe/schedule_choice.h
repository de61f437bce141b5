// Makes the learning-rate schedule from recipe keys. These keys may change between steps, because the plan does not depend on them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "optim/lr_schedule.h"
#include "recipe/recipe.h"

namespace st {

/// lr, lr_schedule and the keys of the schedules.
const std::vector<std::string>& schedule_keys();
bool is_schedule_key(std::string_view key);

/// Throws invalid_argument like LrSchedule. If the run is too short for the default warm-up, the warm-up becomes a tenth of the run.
LrSchedule schedule_choice(const Recipe& recipe);

/// From a JSON object of these keys only; "schedule" is an alias of lr_schedule; missing keys have the recipe's defaults. Throws
/// invalid_argument: unknown key (suggests the nearest), wrong type, out of range, and like LrSchedule.
LrSchedule schedule_from(std::string_view json);

}  // namespace st

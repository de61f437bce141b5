// From the recipe's keys to the learning-rate schedule. They may change between steps: nothing of them is in the plan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "optim/lr_schedule.h"
#include "train/recipe.h"

namespace st {

/// lr, lr_schedule and what it is made from.
const std::vector<std::string>& schedule_keys();
bool is_schedule_key(std::string_view key);

/// Throws invalid_argument, as LrSchedule. A warm-up that is the default, for which the run is too short, becomes a tenth of it.
LrSchedule schedule_choice(const Recipe& recipe);

/// Of a JSON object of these keys alone; "schedule" is lr_schedule too, and what is not there has the recipe's default. Throws
/// invalid_argument: unknown key (the nearest is named), wrong type, out of range, and as LrSchedule.
LrSchedule schedule_from(std::string_view json);

}  // namespace st

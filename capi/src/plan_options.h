// The options of st_plan_create.
#pragma once

#include <string_view>

#include "parts/context.h"
#include "planner/blueprint.h"

namespace st::capi {

/// Sets machine, by_threads and late_parameters of the run. Throws invalid_argument with the option, its value and what is allowed.
BlueprintWishes read_plan_options(std::string_view json, const Context& context, PlannedRun& run);

}  // namespace st::capi

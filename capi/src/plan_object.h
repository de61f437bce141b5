// A plan that a host asked for.
#pragma once

#include <scaletrain/scaletrain.h>

#include <optional>

#include "object_handles.h"
#include "planner/blueprint.h"

namespace st::capi {

struct PlanObject final : Object {
  std::optional<Blueprint> plan;
};

ST_HANDLE(st_plan, plan, PlanObject)

}  // namespace st::capi

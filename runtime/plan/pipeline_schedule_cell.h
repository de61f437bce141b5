// A cell of a schedule's table: the part's number, a letter for the phase, the micro-batch.
#pragma once

#include <string>

#include "plan/pipeline_schedule.h"

namespace st {

/// "3I12": the input gradient of part 3 for micro-batch 12.
std::string cell_of(const PipelineSchedule& schedule, int32_t stage, const StageAction& action);

}  // namespace st

// The order in which a rank runs the sections of a step. memory_plan() places values by it, make_plan() lists it.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "plan/pipeline_schedule.h"

namespace st {

struct SectionRun {
  int32_t section, micro_batch;
  int32_t buffer = 0;  // of the micro-batch's stash; micro-batches in flight at the same time have different ones
};
using StepOrder = std::vector<SectionRun>;

/// All sections of each micro-batch in turn, then the update: one micro-batch is in flight.
StepOrder in_turn(const Program& program, int64_t micro_batches);

/// What program.stage runs by a schedule of its stages (pipeline_cut, split_backward), then the update. A buffer is the first one that is
/// free when a micro-batch begins.
StepOrder in_pipeline(const Program& program, const PipelineSchedule& schedule);

int32_t micro_batches_of(const StepOrder& order);
int32_t buffers_of(const StepOrder& order);

/// Throws invalid_argument with the run that breaks a rule:
/// - each micro-batch has every section but the update once, in the program's order, and one buffer; but backward_weight may come at any
///   time after its backward_input
/// - a section runs the micro-batches by number: the first one writes sums, the others add to them
/// - a buffer belongs to one micro-batch from its first section to its last
/// - the update comes last, once
void verify_order(const Program& program, const StepOrder& order);

}  // namespace st

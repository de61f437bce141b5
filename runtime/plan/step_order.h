// The order in which a rank runs the sections of a step. memory_plan() places values by it, make_plan() lists it.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "plan/pipeline_schedule.h"

namespace st {

struct SectionRun {
  int32_t section, micro_batch;
};
using StepOrder = std::vector<SectionRun>;

/// All sections of each micro-batch in turn, then the update: one micro-batch is in flight.
StepOrder in_turn(const Program& program, int64_t micro_batches);

/// The runs of program.stage by a schedule of its stages (pipeline_cut, split_backward), then the update.
StepOrder in_pipeline(const Program& program, const PipelineSchedule& schedule);

int32_t micro_batches_of(const StepOrder& order);
/// By slot, the chunk whose buffers of the stash have it: the first one that uses it. 0 for slots that are not in the stash.
std::vector<int32_t> chunks_of_slots(const Program& program);
/// When a micro-batch needs what a chunk keeps in the stash: from the chunk's first section to the last one that reads it.
struct BufferUse {
  size_t from = 0, to = 0;  // runs of an order, both included
};
/// By chunk and micro-batch. Outputs of the last micro-batch are read after the step.
std::vector<std::vector<BufferUse>> buffer_uses(const Program& program, const StepOrder& order);
/// By chunk, how many micro-batches need it at the same time.
std::vector<int32_t> in_flight(const Program& program, const StepOrder& order);

/// Throws invalid_argument with the run that breaks a rule:
/// - each micro-batch has every section but the update once, in the program's order; but backward_weight may come at any time after its
///   backward_input
/// - a section runs the micro-batches by number: the first one writes sums, the others add to them
/// - the update comes last, once
void verify_order(const Program& program, const StepOrder& order);

}  // namespace st

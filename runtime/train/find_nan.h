// Looks for the first value of a step that is NaN or infinite: what a second run of the step calls after each instruction.
#pragma once

#include "backend/backend.h"
#include "plan/plan.h"

namespace st {

/// Throws not_finite when the instruction made a value that is not finite: the message names op, scope, tensor, index and micro-batch, and
/// what it read from a slot (a weight, say) that was not finite before; the op and that slot, or the one it wrote, are in the
/// error's place too. `step` is the attempt, from 1.
void check_finite(Backend& backend, const Plan& plan, const Instruction& at, const Call& call, int64_t step);

}  // namespace st

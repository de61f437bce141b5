// Splits backward for schedules that fill waits with gradients of weights.
#pragma once

#include "ir/program.h"

namespace st {

/// Splits each backward section into backward_input, which makes the gradients that other parts wait for, and backward_weight: the nodes
/// that serve a single parameter's gradient (Qi et al. 2023, "Zero Bubble Pipeline Parallelism"). What the second reads of the first lies
/// in the stash. Call after pipeline_cut().
void split_backward(Program& program);

}  // namespace st

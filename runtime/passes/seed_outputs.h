// Backward from gradients of the outputs: for a loss that the host computes.
#pragma once

#include <string_view>
#include <vector>

#include "ir/program.h"
#include "passes/autodiff.h"

namespace st {

/// Outputs of this name are measured, not trained on: they get no gradient.
bool is_metric(std::string_view output);

/// Stores each output in a slot "output.<name>" and returns the seeds of backward: for each floating output that is no metric an input slot
/// "output_gradient.<name>" of its type. With `own_loss` the graph's loss is one more root, seeded by step.own_loss_seed, which is 0 when
/// the host's gradients are meant; without it the loss is dropped, with the inputs that only it reads. clip() divides by
/// step.gradient_unit: 1 for a host's loss, which is not divided by anything. Call on a bound program, after scale_loss() if the loss is
/// kept; then autodiff(program, seeds).
std::vector<Seed> seed_outputs(Program& program, bool own_loss);

}  // namespace st

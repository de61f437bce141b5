// Starts backward from gradients of the outputs, for a loss that the host computes.
#pragma once

#include <string_view>
#include <vector>

#include "ir/program.h"
#include "passes/autodiff.h"

namespace st {

/// Whether an output of this name is a metric, which gets no gradient.
bool is_metric(std::string_view output);

/// Stores each output in a slot "output.<name>" and returns the seeds of backward. Call on a bound program, after scale_loss() if the loss
/// is kept; then autodiff(program, seeds).
///   "output_gradient.<name>"   input slot of the output's type for each floating output that is not a metric; backward starts from it
///   step.own_loss_seed         with `own_loss`: control slot (f64), the seed of the graph's loss as one more root; 0 to use the host's
///                              gradients. Without `own_loss`, the loss and inputs that only it reads are removed
///   step.gradient_unit         control slot (f64), the divisor in clip(); 1 for a host's loss
std::vector<Seed> seed_outputs(Program& program, bool own_loss);

/// Finds the seeds' values in a forward section that a pass has made again since.
void find_seeds(const Program& program, std::vector<Seed>& seeds);

}  // namespace st

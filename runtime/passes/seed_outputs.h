// Backward from gradients of the outputs: for a loss that the host computes.
#pragma once

#include <string_view>
#include <vector>

#include "ir/program.h"
#include "passes/autodiff.h"

namespace st {

/// Outputs of this name are measured, not trained on: they get no gradient.
bool is_metric(std::string_view output);

struct OutputSeeds {
  std::vector<Seed> seeds;
  SlotId unit = -1;  // for clip()
};

/// Stores each output in a slot "output.<name>" and makes, for each floating one that is no metric, an input slot "output_gradient.<name>"
/// of its type, which backward begins from. With `own_loss` the graph's loss is one more root: its seed is the control slot
/// "own_loss_seed" (f64), 0 when the host's gradients are meant; without it the loss, and inputs that only it reads, are dropped. The
/// control slot "gradient_unit" (f64) is what clip() divides by: 1 for a host's loss, which is not divided by anything. Call on a bound
/// program, after scale_loss() if there is a loss to keep; then autodiff(program, seeds).
OutputSeeds seed_outputs(Program& program, bool own_loss);

}  // namespace st

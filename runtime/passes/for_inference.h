// The forward-only program of a model, for evaluation, prediction and generation.
#pragma once

#include <span>
#include <string>

#include "ir/program.h"

namespace st {

/// Removes dropout; stores each output in `outputs` in a slot "output.<name>", its count in "output_count.<name>", and, with `loss`, the
/// loss's sum and count in "loss_sum" and "loss_count"; then removes nodes and inputs that none of them needs. Throws not_found for an
/// unknown output.
void for_inference(Program& program, std::span<const std::string> outputs, bool loss);

/// Removes the nodes of a section that no store depends on, with the outputs and loss among them.
void drop_dead(Program& program, Section& section);

}  // namespace st

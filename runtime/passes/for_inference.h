// The forward-only program of a model: for evaluation, prediction and generation.
#pragma once

#include <span>
#include <string>

#include "ir/program.h"

namespace st {

/// Takes dropout out, stores each output named in `outputs` in a slot "output.<name>", its count in "output_count.<name>", and, with
/// `loss`, the loss's sum and count in "loss_sum" and "loss_count"; then drops what none of them needs, inputs too. Throws not_found for an
/// unknown output.
void for_inference(Program& program, std::span<const std::string> outputs, bool loss);

/// Keeps of a section what a store depends on; outputs and loss that nothing stores are forgotten.
void drop_dead(Program& program, Section& section);

}  // namespace st

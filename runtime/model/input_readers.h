// Finds the results of a model that depend on an input, for errors about a missing input.
#pragma once

#include <string>

#include "ir/program.h"

namespace st {

/// `model`: as built, before any pass.
bool depends_on(const Program& model, Value result, SlotId input);

/// `the loss and output "metric.accuracy"`: names the first output that depends on it. Empty: nothing does.
std::string readers_of(const Program& model, SlotId input);

}  // namespace st

// Which of a model's results depend on an input: for errors about one that is missing.
#pragma once

#include <string>

#include "ir/program.h"

namespace st {

/// `model`: as it was made, before any pass.
bool depends_on(const Program& model, Value result, SlotId input);

/// `the loss and output "metric.accuracy"`; of the outputs the first that does stands for all. Empty: none does.
std::string readers_of(const Program& model, SlotId input);

}  // namespace st

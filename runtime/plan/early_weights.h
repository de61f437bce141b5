// Packs and copies of weights that a stage of a pipeline makes before it first waits for a message.
#pragma once

#include <vector>

#include "plan/step_order.h"

namespace st {

/// By section and node: what a step makes once of weights alone (packs, working copies). Other stages wait for a stage that makes them in
/// its first micro-batch; before its first message the stage would wait itself.
std::vector<std::vector<bool>> early_weights(const Program& program);

/// Index of the first run that begins with a message of another stage; order.size(): none does.
size_t first_wait(const Program& program, const StepOrder& order);

}  // namespace st

// Packs weights for their products once per step.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/program.h"

namespace st {

/// Bytes of a fused_linear's packed weight; 0: the weight is not packed. A parameter, since passes know no backend.
using PackingNeed = std::function<int64_t(const Program& program, const Section& section, const Node& fused_linear)>;

/// Products of rows and a parameter read the parameter packed: the first micro-batch packs it into a slot for all of them. Does nothing
/// with one micro-batch, in which each weight is packed only once anyway. Skips gathered parameters (gather_units), because a packed copy
/// would be whole all the time. Bitwise the same results. Call after fuse(), before memory_plan().
void pack_weights(Program& program, int64_t micro_batches, const PackingNeed& need);

}  // namespace st

// Weights laid out for their products once a step.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/program.h"

namespace st {

/// Bytes that the weight of a fused_linear takes when it is packed for it; 0: it is read as it lies. Handed in, since passes know no
/// backend.
using PackingNeed = std::function<int64_t(const Program& program, const Section& section, const Node& fused_linear)>;

/// Products of rows and a parameter read the parameter packed: the first micro-batch packs it, into a slot of its own, for all of them.
/// With one micro-batch each weight would be packed once anyway, and the program stays as it is. Nor is what ranks gather for
/// a while (gather_units): packed, it would be whole all the time. Bitwise the same results. Call after fuse(), before memory_plan().
void pack_weights(Program& program, int64_t micro_batches, const PackingNeed& need);

}  // namespace st

// Gives each product the tiles that were measured for it. Leaves every bit: what chooses may only choose among tiles of equal bits.
#pragma once

#include <functional>

#include "ir/program.h"

namespace st {

/// The attribute `tiles` of a product's node; empty: the backend's default. Handed in, since passes know no backend.
using TileChoice = std::function<Ints(const Program& program, const Section& section, const Node& node)>;

/// Call after fuse(), which makes other products, and before pack_weights() and memory_plan(): other tiles may pack otherwise and need
/// another workspace.
void tune(Program& program, const TileChoice& choose);

}  // namespace st

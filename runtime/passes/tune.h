// Gives each product the tiles, or the library, that were measured for it. Other tiles leave every bit: what chooses may only choose among
// tiles of equal bits. A library has bits of its own; its identity stands in the program.
#pragma once

#include <functional>
#include <string>

#include "ir/program.h"

namespace st {

/// The attributes of a product's node; empty: the backend's default.
struct ProductTiles {
  Ints tiles;
  std::string library;
};
/// Handed in, since passes know no backend.
using TileChoice = std::function<ProductTiles(const Program& program, const Section& section, const Node& node)>;

/// Call after fuse(), which makes other products, and before pack_weights() and memory_plan(): other tiles may pack otherwise and need
/// another workspace.
void tune(Program& program, const TileChoice& choose);

}  // namespace st

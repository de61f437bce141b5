// Sets each product's measured tiles or library. Tiles do not change results: the caller chooses only among tiles with equal bits. A
// library changes them; its identity is in the program.
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
/// Chooses a product's tiles; a parameter, since passes know no backend.
using TileChoice = std::function<ProductTiles(const Program& program, const Section& section, const Node& node)>;

/// Call after fuse(), which changes products, and before pack_weights() and memory_plan(), because packing and workspace depend on the
/// tiles.
void tune(Program& program, const TileChoice& choose);

}  // namespace st

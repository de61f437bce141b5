#include "passes/tune.h"

#include <utility>

namespace st {

void tune(Program& program, const TileChoice& choose) {
  for (Section& section : program.sections)
    for (int32_t n = 0; n < section.graph.size(); ++n) {
      Node& node = section.graph[n];
      if (!node.attrs.has("tiles")) continue;
      ProductTiles chosen = choose(program, section, node);
      node.attrs.set("tiles", std::move(chosen.tiles));
      if (node.attrs.has("library")) node.attrs.set("library", std::move(chosen.library));
    }
}

}  // namespace st

#include "passes/tune.h"

namespace st {

void tune(Program& program, const TileChoice& choose) {
  for (Section& section : program.sections)
    for (int32_t n = 0; n < section.graph.size(); ++n) {
      Node& node = section.graph[n];
      if (node.attrs.has("tiles")) node.attrs.set("tiles", choose(program, section, node));
    }
}

}  // namespace st

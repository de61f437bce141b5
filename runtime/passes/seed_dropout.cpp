#include "passes/seed_dropout.h"

namespace st {

void seed_dropout(Program& program, int64_t seed) {
  for (Section& section : program.sections)
    for (Node& node : section.graph.nodes)
      if (node.op == Op::dropout) node.attrs.set("seed", seed);
}

}  // namespace st

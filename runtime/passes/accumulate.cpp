#include "passes/accumulate.h"

#include "passes/rewrite.h"

namespace st {

void accumulate(Program& program, int64_t micro_batches) {
  if (micro_batches == 1) return;
  for (Section& section : program.sections) {
    Rewrite rewrite(program, section);
    for (int32_t n = 0; n < rewrite.old().size(); ++n) {
      const Node& node = rewrite.old()[n];
      const auto role = [&] { return program.slot(node.writes[0]).role; };
      if (node.op != Op::store || (role() != Role::gradient && role() != Role::report)) {
        rewrite.keep(n);
        continue;
      }
      Node first = node;
      first.in[0] = rewrite.at(node.in[0]);
      first.when = When::first;
      Node rest = first;
      rest.op = Op::accumulate;
      rest.when = When::rest;
      rewrite.append(first);
      rewrite.append(rest);
    }
    rewrite.finish();
  }
}

}  // namespace st

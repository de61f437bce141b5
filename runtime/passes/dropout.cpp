#include "passes/dropout.h"

#include <algorithm>

#include "passes/rewrite.h"

namespace st {
namespace {

/// Loads of the counters that no dropout reads any more.
void remove_idle_counters(Program& program, Section& section) {
  const auto uses = uses_of(program, section);
  Rewrite rewrite(program, section);
  for (int32_t n = 0; n < rewrite.old().size(); ++n) {
    const Node& node = rewrite.old()[n];
    const bool is_idle = node.op == Op::load && node.reads.front() == program.step.counters && uses[static_cast<size_t>(n)].front() == 0;
    if (!is_idle) rewrite.keep(n);
  }
  rewrite.finish();
}

}  // namespace

void set_dropout(Program& program, double rate, int64_t seed) {
  for (Section& section : program.sections)
    for (Node& node : section.graph.nodes) {
      if (node.op != Op::dropout) continue;
      if (node.attrs.real("rate") == 0) node.attrs.set("rate", rate);
      node.attrs.set("seed", seed);
    }
  remove_dropout(program, [](const Node& node) { return node.attrs.real("rate") == 0; });
}

void remove_dropout(Program& program, const std::function<bool(const Node&)>& is_idle) {
  Section& section = *program.find(Phase::forward);
  const auto is_removed = [&](const Node& node) { return node.op == Op::dropout && is_idle(node); };
  if (std::ranges::none_of(section.graph.nodes, is_removed)) return;
  Rewrite rewrite(program, section);
  for (int32_t n = 0; n < rewrite.old().size(); ++n) {
    const Node& node = rewrite.old()[n];
    if (is_removed(node))
      rewrite.map({n, 0}, rewrite.at(node.in[0]));
    else
      rewrite.keep(n);
  }
  rewrite.finish();
  remove_idle_counters(program, section);
}

}  // namespace st

#include "plan/early_weights.h"

#include <algorithm>

#include "ir/cuts.h"
#include "ir/op.h"

namespace st {
namespace {

/// Whether a section other than the update writes the slot by a node that `is_early` does not hold, in a step: copies that are gathered on
/// request are whole before it.
std::vector<bool> changed_in_step(const Program& program, const std::vector<std::vector<bool>>& is_early) {
  std::vector<bool> changed(program.slots.size());
  for (size_t s = 0; s < program.sections.size(); ++s) {
    const Section& section = program.sections[s];
    for (size_t n = 0; n < section.graph.nodes.size() && section.phase != Phase::update; ++n) {
      const Node& node = section.graph.nodes[n];
      if (is_early[s][n] || gathers_copies(program, node)) continue;
      for (const SlotId slot : node.writes) changed[static_cast<size_t>(slot)] = true;
    }
  }
  return changed;
}

bool is_of_weights(Role role) { return role == Role::parameter || role == Role::working; }

/// Marks what `is_early` does not hold any more, once slots that it reads change; returns whether there was any.
bool look_again(const Program& program, std::vector<std::vector<bool>>& is_early) {
  const std::vector<bool> changed = changed_in_step(program, is_early);
  bool has_changed = false;
  for (size_t s = 0; s < program.sections.size(); ++s) {
    const Graph& graph = program.sections[s].graph;
    std::vector<bool> is_weight(graph.nodes.size());  // values that are weights, or made of them early
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      const bool has_weights = std::ranges::all_of(node.in, [&](Value v) { return is_weight[static_cast<size_t>(v.node)]; });
      if (node.op == Op::load) {
        const SlotId from = node.reads[0];
        is_weight[n] = is_of_weights(program.slot(from).role) && !changed[static_cast<size_t>(from)];
      } else if (is_view(node.op)) {
        is_weight[n] = has_weights;
      } else {
        is_weight[n] = is_early[s][n] && has_weights;
        has_changed = has_changed || is_early[s][n] != is_weight[n];
        is_early[s][n] = is_weight[n];
      }
    }
  }
  return has_changed;
}

}  // namespace

std::vector<std::vector<bool>> early_weights(const Program& program) {
  std::vector<std::vector<bool>> is_early;
  for (const Section& section : program.sections) {
    is_early.emplace_back();
    for (const Node& node : section.graph.nodes)
      is_early.back().push_back(section.phase != Phase::update && node.when == When::first && !node.in.empty() &&
                                !info_of(node.op).exchange);
  }
  while (look_again(program, is_early)) continue;
  return is_early;
}

size_t first_wait(const Program& program, const StepOrder& order) {
  const auto waits = [&](const SectionRun& run) {
    const Section& section = program.sections[static_cast<size_t>(run.section)];
    return section.phase != Phase::update && std::ranges::find(section.graph.nodes, Op::receive, &Node::op) != section.graph.nodes.end();
  };
  return static_cast<size_t>(std::ranges::find_if(order, waits) - order.begin());
}

}  // namespace st

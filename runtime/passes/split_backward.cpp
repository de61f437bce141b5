#include "passes/split_backward.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "passes/rewrite.h"
#include "passes/section_copy.h"

namespace st {
namespace {

/// The gradients that the nodes of a backward section lead to.
class Halves {
 public:
  Halves(const Program& program, const Graph& graph) {
    const auto count = static_cast<size_t>(graph.size());
    serves_.assign(count, kNothing);
    for (int32_t n = graph.size() - 1; n >= 0; --n) {
      const Node& node = graph[n];
      if (is_made_anywhere(node) && serves_[static_cast<size_t>(n)] == kNothing) continue;
      if (!node.writes.empty()) add(n, program.slot(node.writes[0]).role == Role::gradient ? node.writes[0] : kMany);
      if (node.op == Op::send) add(n, kMany);
      if (is_made_anywhere(node) && node.op != Op::reshape) continue;
      for (const Value v : node.in) add(v.node, serves_[static_cast<size_t>(n)]);
    }
  }
  bool is_of_weight(int32_t n) const { return serves_[static_cast<size_t>(n)] >= 0; }

 private:
  static constexpr SlotId kNothing = -1, kMany = -2;  // else the one gradient that it serves
  void add(int32_t n, SlotId what) {
    SlotId& serves = serves_[static_cast<size_t>(n)];
    serves = serves == kNothing || serves == what ? what : kMany;
  }
  std::vector<SlotId> serves_;
};

/// Sections are in the order in which a micro-batch may run them: all of backward_input, then all of backward_weight.
void split(Program& program, const Section& section, std::vector<Section>& inputs, std::vector<Section>& weights) {
  const Graph& old = section.graph;
  const Halves halves(program, old);
  Section input{.graph = {}, .phase = Phase::backward_input, .stage = section.stage, .chunk = section.chunk};
  Section weight{.graph = {}, .phase = Phase::backward_weight, .stage = section.stage, .chunk = section.chunk};
  std::map<Value, SlotId> kept;
  const auto slot_of = [&](Value v) {
    const auto [found, is_new] = kept.emplace(v, -1);
    if (is_new)
      found->second = program.add_slot({.name = free_name(program, text("kept.", section.chunk, ".", v.node, ".", v.output)),
                                        .type = old.type(v),
                                        .role = Role::stash,
                                        .init = {}});
    return found->second;
  };
  const auto as_it_is = [](Graph& to) {
    return [&to](Node load) {
      to.nodes.push_back(std::move(load));
      return Value{to.size() - 1, 0};
    };
  };
  SectionCopy of_weight(
      old, weight.graph,
      [&](Value v) {
        weight.graph.nodes.push_back(load_of(program, slot_of(v), old[v.node].region));
        return Value{weight.graph.size() - 1, 0};
      },
      as_it_is(weight.graph));
  SectionCopy of_input(old, input.graph, {}, as_it_is(input.graph));
  for (int32_t n = 0; n < old.size(); ++n)
    if (!is_made_anywhere(old[n]) && halves.is_of_weight(n)) of_weight.copy(n);
  for (int32_t n = 0; n < old.size(); ++n) {
    if (is_made_anywhere(old[n]) || halves.is_of_weight(n)) continue;
    of_input.copy(n);
    for (int32_t i = 0; i < static_cast<int32_t>(old[n].out.size()); ++i)
      if (const auto found = kept.find({n, i}); found != kept.end())
        input.graph.nodes.push_back(store_of(of_input.at({n, i}), found->second, old[n].region));
  }
  inputs.push_back(std::move(input));
  weights.push_back(std::move(weight));
}

}  // namespace

void split_backward(Program& program) {
  std::vector<Section> made, weights;
  const std::vector<Section> old = std::exchange(program.sections, {});
  for (const Section& section : old) {
    if (section.phase == Phase::backward)
      split(program, section, made, weights);
    else
      made.push_back(section);
  }
  std::ranges::move(weights, std::back_inserter(made));
  program.sections = std::move(made);
}

}  // namespace st

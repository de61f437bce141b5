#include "passes/part_uses.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "passes/pipeline_cut.h"

namespace st {

PartUses::PartUses(const Program& program, const PipelineParts& parts)
    : count(static_cast<int32_t>(parts.stage_of.size())),
      own(program.stage),
      forward(program.find(Phase::forward)->graph),
      backward(program.find(Phase::backward)->graph),
      part_of_forward(parts_of_forward(program, parts.stage_of, parts.starts, parts.scopes)),
      program_(program),
      stages_(parts.stage_of) {
  find_stashed();
  find_given_late();
  find_makers();
  find_parts_of_backward();
  find_readers_in_forward();
  find_readers_in_backward();
  find_owners();
  check_stages();
}

int32_t PartUses::chunk_of(int32_t part) const {
  return static_cast<int32_t>(std::count(stages_.begin(), stages_.begin() + part, stage_of(part)));
}

std::vector<int32_t> PartUses::own_parts() const {
  std::vector<int32_t> found;
  for (int32_t part = 0; part < count; ++part)
    if (is_own(part)) found.push_back(part);
  return found;
}

Value PartUses::behind(const Graph& graph, Value v) {
  while (graph[v.node].op == Op::reshape) v = graph[v.node].in[0];
  return v;
}

void PartUses::find_stashed() {
  for (const Node& node : forward.nodes)
    if (is_stash_store(node)) {
      const Value v = behind(forward, node.in[0]);  // of a view, what it is a view of
      value_in[node.writes[0]] = v;
      if (v == node.in[0]) slot_of.emplace(v, node.writes[0]);
    }
}

/// Inputs that backward alone reads: gradients of outputs, which the host has once the last part has run. That part takes them.
void PartUses::find_given_late() {
  std::set<SlotId> in_forward;
  const auto is_input = [this](const Node& node) { return node.op == Op::load && role(node.reads[0]) == Role::input; };
  for (const Node& node : forward.nodes)
    if (is_input(node)) in_forward.insert(node.reads[0]);
  for (int32_t n = 0; n < backward.size(); ++n)
    if (is_input(backward[n]) && !in_forward.contains(backward[n].reads[0])) given_late.emplace(backward[n].reads[0], Value{n, 0});
}

/// The nodes that make working copies: cast and store. Each stage that has the parameter makes its own.
void PartUses::find_makers() {
  for (int32_t n = 0; n < forward.size(); ++n) {
    const Node& store = forward[n];
    if (store.op != Op::store || role(store.writes[0]) != Role::working) continue;
    makers[store.writes[0]] = n;
    is_of_maker_.insert({n, store.in[0].node});
  }
}

bool PartUses::is_left_out(const Graph& graph, int32_t n) const {
  const Node& node = graph[n];
  return is_anywhere(node) || (&graph == &forward && (is_stash_store(node) || is_of_maker_.contains(n)));
}

bool PartUses::is_result(const Node& node) const {
  return node.op == Op::store && (role(node.writes[0]) == Role::report || role(node.writes[0]) == Role::output);
}

int32_t PartUses::part_of(int32_t n) const { return is_result(forward[n]) ? count - 1 : part_of_forward[static_cast<size_t>(n)]; }

void PartUses::find_parts_of_backward() {
  std::map<RegionId, int32_t> of_scope;
  for (int32_t n = 0; n < forward.size(); ++n)
    if (!is_left_out(forward, n)) of_scope.emplace(outermost_of(program_, forward[n].region), part_of(n));
  of_scope[0] = count - 1;
  for (const Node& node : backward.nodes) {
    const auto found = of_scope.find(outermost_of(program_, node.region));
    int32_t part = found == of_scope.end() || is_given_late(node) ? count - 1 : found->second;
    const bool is_write = node.op == Op::store && !node.in.empty() && !is_anywhere(backward[behind(backward, node.in[0]).node]);
    if (is_write) part = part_b(behind(backward, node.in[0]));
    for (const Value v : node.in)
      if (const Value from = behind(backward, v); !is_anywhere(backward[from.node])) part = std::min(part, part_b(from));
    part_of_backward.push_back(part);
  }
}

void PartUses::read_in_forward(Value v, int32_t part) {
  v = behind(forward, v);
  const Node& source = forward[v.node];
  if (source.op == Op::load) return use_weight(source.reads[0], part, true);
  if (!is_made_anywhere(source) && part_of(v.node) != part) readers_in_forward[v].insert(part);
}

void PartUses::find_readers_in_forward() {
  for (int32_t n = 0; n < forward.size(); ++n)
    if (!is_left_out(forward, n))
      for (const Value v : forward[n].in) read_in_forward(v, part_of(n));
  for (const Value v : {program_.loss_sum, program_.loss_count})
    if (v) read_in_forward(v, count - 1);
}

void PartUses::find_readers_in_backward() {
  for (int32_t n = 0; n < backward.size(); ++n) {
    if (is_left_out(backward, n)) continue;
    const int32_t part = part_of_backward[static_cast<size_t>(n)];
    for (const Value in : backward[n].in) {
      const Value v = behind(backward, in);
      const Node& source = backward[v.node];
      if (source.op == Op::load && !is_given_late(source)) {
        const SlotId slot = source.reads[0];
        if (const auto found = value_in.find(slot); found != value_in.end()) {
          recalled_by[found->second].insert(part);
          if (part_of(found->second.node) != part) readers_in_forward[found->second].insert(part);
        }
        use_weight(slot, part, false);
        if (role(slot) == Role::input && is_own(part)) late_inputs.insert(slot);
      } else if (!is_anywhere(source) && part_b(v) != part) {
        readers_in_backward[v].insert(part);
      }
    }
  }
  const int32_t first = own_parts().front();
  for (int32_t n = 0; n < forward.size(); ++n)
    if (!is_left_out(forward, n) && is_own(part_of(n)) && part_of(n) != first)
      for (const Value in : forward[n].in)
        if (const Node& source = forward[behind(forward, in).node]; source.op == Op::load && role(source.reads[0]) == Role::input)
          late_inputs.insert(source.reads[0]);
}

void PartUses::use_weight(SlotId slot, int32_t part, bool in_forward) {
  if (role(slot) != Role::parameter && role(slot) != Role::working) return;
  const SlotId parameter = role(slot) == Role::parameter ? slot : program_.slot(slot).of;
  users[slot].insert(stage_of(part));
  const auto [first, is_new] = first_part_.emplace(parameter, std::pair(in_forward, part));
  if (!is_new && in_forward && (!first->second.first || part < first->second.second)) first->second = {true, part};
}

/// A parameter belongs to the stage of its first use that has a gradient, or else of its first use.
void PartUses::find_owners() {
  for (const auto& [parameter, first] : first_part_) owner[parameter] = stage_of(first.second);
  for (int32_t n = 0; n < backward.size(); ++n) {
    const Node& node = backward[n];
    if (node.op != Op::store || role(node.writes[0]) != Role::gradient) continue;
    const Slot& gradient = program_.slot(node.writes[0]);
    stage_of_gradient[node.writes[0]] = stage_of(part_of_backward[static_cast<size_t>(n)]);
    if (gradient.name == text("gradient.", program_.slot(gradient.of).name)) owner[gradient.of] = stage_of_gradient[node.writes[0]];
  }
}

void PartUses::check_stages() const {
  for (int32_t stage = 0; stage < program_.mesh.stage; ++stage) {
    const bool has_some = std::ranges::any_of(owner, [&](const auto& of) { return of.second == stage; });
    check(has_some, "pipeline: stage ", stage, " of ", program_.mesh.stage,
          " would have no parameter to train or use; use fewer stages, or say with stage_starts where they begin");
  }
}

}  // namespace st

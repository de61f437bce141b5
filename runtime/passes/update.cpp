#include "passes/update.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ir/build.h"
#include "ir/cuts.h"
#include "ir/optimizer_state.h"
#include "passes/clip.h"
#include "passes/piece_updates.h"
#include "passes/product_weights.h"

namespace st {

namespace {

/// By parameter, the working copy that a step makes once, or that is the host's; -1: there is none, or each micro-batch makes its own.
std::vector<SlotId> working_copies(const Program& program) {
  std::vector<SlotId> copies(program.slots.size(), -1);
  for (size_t s = 0; s < program.slots.size(); ++s)
    if (const Slot& slot = program.slots[s]; slot.role == Role::working && slot.borrowed)
      copies[static_cast<size_t>(slot.of)] = static_cast<SlotId>(s);
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes) {
      const bool makes = node.when == When::first && (node.op == Op::store || node.op == Op::all_gather);
      for (const SlotId written : makes ? std::span(node.writes) : std::span<const SlotId>())
        if (const Slot& slot = program.slot(written); slot.role == Role::working) copies[static_cast<size_t>(slot.of)] = written;
    }
  return copies;
}

/// How a state of an optimizer is cut: where the parameter is, in elements of the state, of which several may share one.
AxisLayout layout_of_state(const Slot& parameter, const Type& state, const Type& of_grain) {
  AxisLayout layout = parameter.update;
  const bool is_of_one = layout.grain >= parameter.type.shape.elements();
  layout.grain = std::max<int64_t>(is_of_one ? state.shape.elements() : of_grain.shape.elements(), 1);
  return layout;
}

/// Slots of what the optimizer keeps of a parameter, or of this rank's shard of it, to `slots`.
void add_state(Program& program, const OptimizerChoice& optimizer, SlotId parameter, std::vector<SlotId>& slots) {
  const Slot slot = program.slot(parameter);
  const auto states_of = [&](const Shape& shape) {
    return optimizer_state(optimizer.op, make_attrs(optimizer.op, optimizer.attrs),
                           {.dtype = slot.type.dtype, .shape = shape, .layout = {}});
  };
  const bool is_sharded = slot.update.is_flat(), is_of_many = is_sharded && slot.update.grain < slot.type.shape.elements();
  const std::vector<PieceState> states = state_of(slot, optimizer);
  const std::vector<OptimizerState> of_grain = is_of_many ? states_of({slot.update.grain}) : std::vector<OptimizerState>();
  for (size_t i = 0; i < states.size(); ++i) {
    const std::string name = text(states[i].name, ".", slot.name);
    const SlotId kept = program.slot_named(name);
    if (kept >= 0 && program.slot(kept).role == Role::optimizer) {
      slots.push_back(kept);
      continue;
    }
    Type type = states[i].type;
    if (is_sharded) type.layout[MeshAxis::data] = layout_of_state(slot, type, is_of_many ? of_grain[i].type : type);
    slots.push_back(
        program.add_slot({.name = name, .type = type, .role = Role::optimizer, .init = {}, .of = parameter, .piece = states[i].piece}));
  }
}

}  // namespace

void update(Program& program, const ChooseOptimizer& choose, std::span<const SlotId> shared, int64_t at_a_time) {
  Section* section = program.find(Phase::update);
  require(section != nullptr, Code::internal, "update: no update section; call clip() first");
  Builder b(program, static_cast<int32_t>(section - program.sections.data()));
  program.step.rates =
      program.add_slot({.name = "rates", .type = {.dtype = DType::f64, .shape = {2}, .layout = {}}, .role = Role::control, .init = {}});
  const Value skip = b.load(program.step.skipped);
  const Value rate = b.load(program.step.rates);
  std::map<int, Value> factors;  // by group
  const std::vector<bool> is_weight = weights_of_products(program);
  const std::vector<SlotId> copies = working_copies(program);

  const auto count = static_cast<SlotId>(program.slots.size());
  std::map<DType, std::vector<SlotId>> wholes;  // of which other ranks have pieces
  for (SlotId parameter = 0; parameter < count; ++parameter) {
    const Slot slot = program.slot(parameter);
    const bool is_sharded = slot.update.is_flat();
    const SlotId gradient = slot.role == Role::parameter ? program.slot_named("gradient." + slot.name) : -1;
    if (gradient < 0 || !is_here(program, program.slot(gradient))) continue;
    const SlotId copy = copies[static_cast<size_t>(parameter)];
    if (is_sharded) {
      const auto gather = [&](SlotId id) {
        if (const Type& type = program.slot(id).type; !type.layout.is_flat()) wholes[type.dtype].push_back(id);
      };
      if (std::ranges::find(shared, parameter) == shared.end()) gather(parameter);
      if (copy >= 0 && !program.slot(copy).borrowed) gather(copy);
    }
    if (is_sharded && !has_shard(program, parameter)) continue;
    const OptimizerChoice optimizer = choose(slot, is_weight[static_cast<size_t>(parameter)]);
    std::vector<SlotId> slots = {parameter};
    add_state(program, optimizer, parameter, slots);
    if (copy >= 0) slots.push_back(copy);
    Value& factor = factors[optimizer.clip_group];
    if (!factor) factor = b.load(program.slot_named(factor_slot(optimizer.clip_group)));
    const std::vector<Value> in = {is_sharded ? b.load_shard(gradient) : b.load(gradient), factor, skip, rate};
    if (slot.piece.is_cut() && takes_whole(optimizer.op))
      update_piece(b, optimizer, in, slots);
    else
      b.update(optimizer.op, in, slots, optimizer.attrs);
  }
  for (const auto& [dtype, slots] : wholes)
    for (size_t first = 0, end = 0; first < slots.size(); first = end) {
      end = end_of_group(program, slots, first, at_a_time);
      b.graph().nodes.push_back({.op = Op::all_gather,
                                 .in = {},
                                 .out = {},
                                 .reads = {},
                                 .writes = {slots.begin() + static_cast<ptrdiff_t>(first), slots.begin() + static_cast<ptrdiff_t>(end)},
                                 .attrs = make_attrs(Op::all_gather, {})});
    }
}

size_t end_of_group(const Program& program, std::span<const SlotId> tensors, size_t first, int64_t at_a_time) {
  size_t end = first;
  for (int64_t bytes = 0; end < tensors.size(); ++end) {
    bytes += program.slot(tensors[end]).type.bytes();
    if (end > first && bytes > at_a_time) break;
  }
  return end;
}

void keep_moments(Program& program, const Program& of) {
  for (const Slot& slot : of.slots)
    if (slot.role == Role::optimizer) program.add_slot(slot);
}

}  // namespace st

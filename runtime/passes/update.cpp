#include "passes/update.h"

#include <map>

#include "base/error.h"
#include "ir/build.h"
#include "ir/optimizer_state.h"
#include "passes/clip.h"

namespace st {

namespace {

/// Parameters that products multiply by, and no embedding looks rows up in.
std::vector<bool> weights_of_products(const Program& program) {
  std::vector<bool> multiplied(program.slots.size()), looked_up(program.slots.size());
  for (const Section& section : program.sections) {
    const auto parameter_behind = [&](Value value) {
      const Node* node = &section.graph[value.node];
      while (node->op == Op::cast || node->op == Op::reshape) node = &section.graph[node->in[0].node];
      return program.parameter_of(*node);
    };
    if (section.phase != Phase::forward) continue;
    for (const Node& node : section.graph.nodes) {
      const bool multiplies = node.op == Op::matmul || node.op == Op::linear;
      if (!multiplies && node.op != Op::embedding) continue;
      for (const Value operand : node.in)
        if (const SlotId parameter = parameter_behind(operand); parameter >= 0)
          (multiplies ? multiplied : looked_up)[static_cast<size_t>(parameter)] = true;
    }
  }
  for (size_t i = 0; i < multiplied.size(); ++i) multiplied[i] = multiplied[i] && !looked_up[i];
  return multiplied;
}

/// By parameter, the working copy that a step makes once, or that is the host's; -1: there is none, or each micro-batch makes its own.
std::vector<SlotId> working_copies(const Program& program) {
  std::vector<SlotId> copies(program.slots.size(), -1);
  for (size_t s = 0; s < program.slots.size(); ++s)
    if (const Slot& slot = program.slots[s]; slot.role == Role::working && slot.lent)
      copies[static_cast<size_t>(slot.of)] = static_cast<SlotId>(s);
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes) {
      if (node.op != Op::store || node.when != When::first) continue;
      const Slot& slot = program.slots[static_cast<size_t>(node.writes[0])];
      if (slot.role == Role::working) copies[static_cast<size_t>(slot.of)] = node.writes[0];
    }
  return copies;
}

}  // namespace

void update(Program& program, const ChooseOptimizer& choose) {
  Section* section = program.find(Phase::update);
  require(section != nullptr, Code::internal, "update: no update section; call clip() first");
  Builder b(program, static_cast<int32_t>(section - program.sections.data()));
  const SlotId rates =
      program.add_slot({.name = "rates", .type = {.dtype = DType::f64, .shape = {2}, .layout = {}}, .role = Role::control, .init = {}});
  const Value skip = b.load(program.slot_named("skipped"));
  const Value rate = b.load(rates);
  std::map<int, Value> factors;  // by group
  const std::vector<bool> is_weight = weights_of_products(program);
  const std::vector<SlotId> copies = working_copies(program);

  const auto count = static_cast<SlotId>(program.slots.size());
  for (SlotId parameter = 0; parameter < count; ++parameter) {
    const Slot slot = program.slots[static_cast<size_t>(parameter)];
    const SlotId gradient = slot.role == Role::parameter ? program.slot_named("gradient." + slot.name) : -1;
    if (gradient < 0) continue;
    const OptimizerChoice optimizer = choose(slot, is_weight[static_cast<size_t>(parameter)]);
    std::vector<SlotId> slots = {parameter};
    for (const OptimizerState& state : optimizer_state(optimizer.op, make_attrs(optimizer.op, optimizer.attrs), slot.type)) {
      const std::string name = text(state.name, ".", slot.name);
      const SlotId kept = program.slot_named(name);
      const bool is_kept = kept >= 0 && program.slots[static_cast<size_t>(kept)].role == Role::optimizer;
      slots.push_back(is_kept ? kept
                              : program.add_slot({.name = name, .type = state.type, .role = Role::optimizer, .init = {}, .of = parameter}));
    }
    if (const SlotId copy = copies[static_cast<size_t>(parameter)]; copy >= 0) slots.push_back(copy);
    Value& factor = factors[optimizer.clip_group];
    if (!factor) factor = b.load(program.slot_named(factor_slot(optimizer.clip_group)));
    b.update(optimizer.op, {b.load(gradient), factor, skip, rate}, slots, optimizer.attrs);
  }
}

void keep_moments(Program& program, const Program& of) {
  for (const Slot& slot : of.slots)
    if (slot.role == Role::optimizer) program.add_slot(slot);
}

}  // namespace st

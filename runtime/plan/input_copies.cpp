#include "plan/input_copies.h"

#include "ir/cuts.h"

namespace st {
namespace {

/// By slot.
std::vector<bool> slots_read(const Plan& plan) {
  std::vector<bool> runs(plan.program.sections.size()), reads(plan.program.slots.size());
  for (const Instruction& at : plan.instructions) runs[static_cast<size_t>(at.section)] = true;
  for (size_t s = 0; s < runs.size(); ++s) {
    if (!runs[s]) continue;
    const Graph& graph = plan.program.sections[s].graph;
    const auto mark = [&](SlotId slot) {
      if (slot >= 0) reads[static_cast<size_t>(slot)] = true;
    };
    for (const Node& node : graph.nodes) {
      if (is_view(node.op)) continue;
      for (const Value v : node.in) mark(graph.slot_behind(v));
      for (const SlotId slot : node.reads) mark(slot);
    }
  }
  return reads;
}

}  // namespace

InputCopies input_copies(const Plan& plan) {
  const Program& program = plan.program;
  const std::vector<bool> is_read = slots_read(plan);
  InputCopies copies;
  copies.offsets.assign(program.slots.size(), -1);
  for (size_t s = 0; s < program.slots.size(); ++s) {
    if (program.slots[s].role != Role::input || !is_read[s]) continue;
    copies.offsets[s] = copies.bytes;
    copies.bytes += align_up(own_type(program, program.slots[s]).bytes());
  }
  return copies;
}

}  // namespace st

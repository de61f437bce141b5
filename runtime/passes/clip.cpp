#include "passes/clip.h"

#include "base/error.h"
#include "ir/build.h"

namespace st {

void clip(Program& program, double max_norm, SlotId unit) {
  check(max_norm >= 0, "clip: the largest norm is ", max_norm, "; give a positive number, or 0 for no clipping");
  program.sections.push_back({.graph = {}, .phase = Phase::update});
  Builder b(program, static_cast<int32_t>(program.sections.size()) - 1);

  // Slots of role gradient stand in the order backward made them: later uses of a tied parameter may come before its first.
  std::vector<Value> gradients;
  const auto count = static_cast<SlotId>(program.slots.size());
  for (SlotId parameter = 0; parameter < count; ++parameter) {
    const Slot& slot = program.slots[static_cast<size_t>(parameter)];
    if (slot.role != Role::parameter) continue;
    const SlotId first = program.slot_named("gradient." + slot.name);
    if (first < 0) continue;
    for (int use = 1;; ++use) {
      const SlotId more = program.slot_named(text("gradient.", program.slots[static_cast<size_t>(parameter)].name, ".use", use));
      if (more < 0) break;
      b.accumulate(b.load(more), first, When::every);
    }
    gradients.push_back(b.load(first));
  }

  const auto norm = b.append(Op::gradient_norm, gradients);
  const Value units = b.load(unit < 0 ? program.slot_named("loss_count") : unit);
  const double seed = unit < 0 ? program.loss_seed : 1;
  const auto factor = b.append(Op::step_factor, {norm[0], norm[1], units}, {{"seed", seed}, {"max_norm", max_norm}});
  const char* names[] = {"factor", "grad_norm", "skipped"};
  for (size_t i = 0; i < 3; ++i)
    b.store(factor[i], program.add_slot({.name = names[i], .type = b.type(factor[i]), .role = Role::report, .init = {}}));
}

}  // namespace st

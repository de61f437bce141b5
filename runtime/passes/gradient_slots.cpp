#include "passes/gradient_slots.h"

#include "base/error.h"

namespace st {

std::vector<std::vector<SlotId>> gradient_slots(const Program& program) {
  std::vector<std::vector<SlotId>> all;
  for (const Slot& parameter : program.slots) {
    if (parameter.role != Role::parameter) continue;
    const SlotId first = program.slot_named("gradient." + parameter.name);
    if (first < 0) continue;
    std::vector<SlotId> uses = {first};
    for (int use = 1;; ++use) {
      const SlotId more = program.slot_named(text("gradient.", parameter.name, ".use", use));
      if (more < 0) break;
      uses.push_back(more);
    }
    all.push_back(std::move(uses));
  }
  return all;
}

bool is_of_one_use(const Program& program, SlotId gradient) {
  const SlotId parameter = program.slot(gradient).of;
  return program.slot_named(text("gradient.", program.slot(parameter).name, ".use1")) < 0;
}

}  // namespace st

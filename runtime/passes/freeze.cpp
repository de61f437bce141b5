#include "passes/freeze.h"

#include <algorithm>

#include "base/error.h"

namespace st {

void freeze(Program& program, const std::function<bool(const Slot& parameter)>& is_frozen) {
  bool froze = false;
  for (Slot& slot : program.slots) {
    if (slot.role != Role::parameter || !is_frozen(slot)) continue;
    slot.trainable = false;
    froze = true;
  }
  const auto is_trained = [](const Slot& slot) { return slot.role == Role::parameter && slot.trainable && is_floating(slot.type.dtype); };
  check(!froze || std::ranges::any_of(program.slots, is_trained), "freeze: every parameter is frozen; leave at least one to train");
}

}  // namespace st

// Removes slots that no node reads or writes from a program.
#pragma once

#include <functional>

#include "ir/program.h"

namespace st {

/// The other slots keep their order; all references to them are renumbered.
void remove_slots(Program& program, const std::function<bool(SlotId slot)>& is_gone);

}  // namespace st

// Takes slots that nothing reads or writes any more out of a program.
#pragma once

#include <functional>

#include "ir/program.h"

namespace st {

/// The other slots keep their order; everything that names them is told their new numbers.
void remove_slots(Program& program, const std::function<bool(SlotId slot)>& is_gone);

}  // namespace st

// Where backward leaves the gradients of a program's parameters.
#pragma once

#include <vector>

#include "ir/program.h"

namespace st {

/// Of each trained parameter, in the order of the parameters' slots, the gradient slots of its uses in graph order. The slots themselves
/// stand in the order backward made them: later uses of a tied parameter may come before its first.
std::vector<std::vector<SlotId>> gradient_slots(const Program& program);

}  // namespace st

// Where backward leaves the gradients of a program's parameters.
#pragma once

#include <vector>

#include "ir/program.h"

namespace st {

/// Of each trained parameter, in the order of the parameters' slots, the gradient slots of its uses in graph order. The slots themselves
/// stand in the order backward made them: later uses of a tied parameter may come before its first.
std::vector<std::vector<SlotId>> gradient_slots(const Program& program);

/// Whether a gradient slot is all of its parameter's gradient, which is not tied.
bool is_of_one_use(const Program& program, SlotId gradient);

}  // namespace st

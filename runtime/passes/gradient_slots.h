// The slots in which backward stores the gradients of a program's parameters, and the section that adds and uses them.
#pragma once

#include <vector>

#include "ir/build.h"

namespace st {

/// For each trained parameter, in slot order, the gradient slots of its uses in graph order. The program has these slots in the order in
/// which backward made them, so a later use of a tied parameter may come before its first.
std::vector<std::vector<SlotId>> gradient_slots(const Program& program);

/// Opens the update section and adds there the uses of tied parameters, in graph order: whole gradients, or this rank's shards of cut
/// parameters. Does nothing if a pass has opened it. The builder appends to it.
Builder open_update(Program& program);

/// Whether a gradient slot holds its parameter's whole gradient, because the parameter is not tied.
bool is_of_one_use(const Program& program, SlotId gradient);

}  // namespace st

// The exponential moving average of the weights, kept beside them.
#pragma once

#include "ir/program.h"

namespace st {

/// Behind all updates an average node for each parameter that has a gradient, over a slot "average.<parameter>" of role optimizer and the
/// parameter's type. A slot that is there already (keep_moments) is that one, and is averaged whether this program updates the parameter or
/// not. In pieces (zero_shard): of this rank's. Changes no bit of the rest. Call after update().
void average(Program& program, double decay);

/// The slot of a parameter's average; -1: none is kept.
SlotId average_of(const Program& program, SlotId parameter);

}  // namespace st

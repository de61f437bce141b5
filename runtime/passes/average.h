// The exponential moving average of the weights.
#pragma once

#include "ir/program.h"

namespace st {

/// Appends, after all updates, an average node for each parameter that has a gradient and is on this stage, on a slot "average.<parameter>"
/// of role optimizer and the parameter's type. Reuses an existing slot (keep_moments) and then averages it even if this program does not
/// update the parameter. If sharded (zero_shard), averages this rank's shards. Other results stay bitwise equal. Call after update().
void average(Program& program, double decay);

/// The slot of a parameter's average; -1: none.
SlotId average_of(const Program& program, SlotId parameter);

}  // namespace st

// Sums over the stages of a pipeline, before the update.
#pragma once

#include <utility>
#include <vector>

#include "ir/build.h"

namespace st {

/// Adds the gradient of a tied parameter's later use to that of its first one, both whole or this rank's shards. The stage of a use sends
/// it to the stage of the first one.
void add_use(Builder& b, SlotId use, SlotId first, bool as_shards);

/// Hands a value of a tied parameter's later use, which lies in a slot, from that use's stage to the first one's. `room`: a slot like the
/// one that receives it, which is returned.
void send_use(Builder& b, Value value, SlotId use, SlotId first);
SlotId receive_use(Builder& b, SlotId use, SlotId first, Slot room);

/// On all ranks along the stage or the tensor axis, each of these slots gets the sum over them of its terms; a rank without a term gives
/// zeros.
void sum_along(Builder& b, MeshAxis axis, const std::vector<std::pair<Value, SlotId>>& terms);

/// The loss's sum and count, which the last stage has, on all stages. Nothing on one stage.
void share_loss(Builder& b);

}  // namespace st

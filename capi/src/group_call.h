// Calls of what exchanges by a communicator of the host's: they are calls on that too.
#pragma once

#include "objects.h"

namespace st::capi {

/// Nobody else's call is on the communicator meanwhile.
using GroupCall = Lease<CommunicatorObject>;

/// Within a GroupCall: for exchanges of the calling thread, which come behind those that are pending.
void take_turn(CommunicatorObject& group);

/// Pieces of work on the communicator's own thread, behind what is pending. Borrows the group.
GradientExchange::Post post_to(CommunicatorObject& group);

}  // namespace st::capi

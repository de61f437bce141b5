// Calls of what exchanges by a communicator of the host's: they are calls on that too.
#pragma once

#include <functional>
#include <memory>

#include "communicator_object.h"
#include "model_object.h"
#include "parts/gradient_exchange.h"

namespace st::capi {

/// Nobody else's call is on the communicator meanwhile.
using GroupCall = Lease<CommunicatorObject>;

/// Within a GroupCall: for exchanges of the calling thread, which come behind those that are pending.
void take_turn(CommunicatorObject& group);

/// Pieces of work on the communicator's own thread, behind what is pending. Borrows the group.
GradientExchange::Post post_to(CommunicatorObject& group);

/// The communicator by whose ranks a model is had in pieces; null: it is whole, or theirs is gone. Within the model's lease.
std::shared_ptr<CommunicatorObject> group_of_pieces(const ModelObject& model);
void make_in_group(CommunicatorObject& group, const std::function<void(JointCall* joint)>& call);
/// A call that these ranks make together, in which the communicator is theirs; `group` null: this one makes it alone.
template <class Call>
void make_jointly(const std::shared_ptr<CommunicatorObject>& group, const Call& call) {
  if (!group) return call(nullptr);
  const GroupCall turn(Kind::communicator, group);
  make_in_group(*group, std::ref(call));
}

}  // namespace st::capi

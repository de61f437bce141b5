// Calls of objects that exchange through a host's communicator: each is also a call on the communicator.
#pragma once

#include <functional>
#include <memory>

#include "communicator_object.h"
#include "model_object.h"

namespace st::capi {

/// Excludes other calls on the communicator.
using GroupCall = Lease<CommunicatorObject>;

/// Within a GroupCall: lets the calling thread exchange, after all pending work.
void take_turn(CommunicatorObject& group);

/// The communicator across whose ranks a model is sharded; null if it is whole. Call within the model's lease. Throws wrong_state if the
/// communicator is gone.
std::shared_ptr<CommunicatorObject> sharding_group_of(const ModelObject& model, const char* call);
void make_in_group(CommunicatorObject& group, const std::function<void(ShardedModelCall* collective)>& call);
/// A collective call of these ranks, which reserves the communicator; with a null group, a call of this rank alone.
template <class Call>
void make_collectively(const std::shared_ptr<CommunicatorObject>& group, const Call& call) {
  if (!group) return call(nullptr);
  const GroupCall turn(Kind::communicator, group);
  make_in_group(*group, std::ref(call));
}

}  // namespace st::capi

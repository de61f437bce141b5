#include "group_call.h"

#include <utility>

namespace st::capi {

void take_turn(CommunicatorObject& group) {
  group.queue.drain();
  group.cancels = group.context->cancels().load();
}

std::shared_ptr<CommunicatorObject> sharding_group_of(const ModelObject& model, const char* call) {
  if (!model.model->is_sharded()) return nullptr;
  std::shared_ptr<CommunicatorObject> group = model.group.lock();
  require(group != nullptr, Code::wrong_state, call, ": this model holds only the shards of ", model.model->shard_holder(),
          ", and their communicator is gone; while it exists, save with st_trainer_save_collective, and load the checkpoint into another "
          "model");
  return group;
}

void make_in_group(CommunicatorObject& group, const std::function<void(ShardedModelCall* collective)>& call) {
  take_turn(group);
  ShardedModelCall::make(group.ranks.get(), call);
}

}  // namespace st::capi

#include "group_call.h"

#include <utility>

namespace st::capi {

void take_turn(CommunicatorObject& group) {
  group.queue.drain();
  group.cancels = group.context->cancels().load();
}

GradientExchange::Post post_to(CommunicatorObject& group) {
  return [&group](std::function<void()> work, Pending& pending) {
    const uint64_t cancels = group.context->cancels();
    group.queue.post(group.queue.prepare([&group, cancels, work = std::move(work)] {
      group.cancels = cancels;
      work();
    }),
                     pending);
  };
}

std::shared_ptr<CommunicatorObject> sharding_group_of(const ModelObject& model) {
  return model.model->is_sharded() ? model.group.lock() : nullptr;
}

void make_in_group(CommunicatorObject& group, const std::function<void(ShardedModelCall* collective)>& call) {
  take_turn(group);
  ShardedModelCall::make(group.ranks.get(), call);
}

}  // namespace st::capi

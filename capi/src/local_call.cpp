#include "local_call.h"

#include "base/error.h"

namespace st::capi {

void require_local(bool needs_others, std::string_view call, std::string_view holder, std::string_view what) {
  require(!needs_others, Code::wrong_state, call, ": other ranks have parts of ", what, "; this is ", holder, ". Call ", call,
          "_collective on all ranks");
}

void require_local(const ModelObject& model, std::string_view call, std::string_view what) {
  require_local(model.model->is_sharded(), call, model.model->shard_holder(), what);
}

void require_local(const TrainerObject& trainer, std::string_view call, std::string_view what) {
  const Trainer& t = *trainer.trainer;
  const Communicator* const group = t.sharding_group_of();
  if (group == nullptr) return;
  require_local(true, call, text("rank ", group->rank(), " of ", group->size(), " (", t.sharding_keys(), ")"), what);
}

}  // namespace st::capi

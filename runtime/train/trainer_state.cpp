#include "train/trainer_state.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "train/run_digests.h"

namespace st {

std::vector<Trainer::StateTensor> Trainer::state_tensors() const {
  const std::vector<Slot>& slots = plan().program.slots;
  std::vector<StateTensor> all;
  for (size_t s = 0; s < slots.size(); ++s)
    if (slots[s].role == Role::parameter || slots[s].role == Role::optimizer)
      all.push_back({&slots[s], executor().slot(static_cast<SlotId>(s)).as<std::byte>()});
  std::ranges::sort(all, {}, [](const StateTensor& tensor) -> const std::string& { return tensor.slot->name; });
  return all;
}

TrainingState Trainer::training_state() const {
  const Backend& backend = model_->context().backend();
  TrainingState state;
  state.step = attempts_;
  state.updates = updates_;
  state.tokens = tokens_;
  state.items = items_taken_;
  state.loss = last_loss_;
  if (!host_schedule_) state.lr = schedule_.at(updates_);
  if (scaler_) state.loss_scaler = scaler_->state();
  if (recipe_.gradient_noise_scale) state.gradient_noise = noise_.state();
  state.seed = recipe_.seed;
  state.batch = recipe_.batch;
  state.micro_batches = recipe_.step_micro_batches();
  if (data_) {
    state.rows = data_->rows();
    state.fields = texts_of(data_->fields());
    if (data_digest_.empty()) data_digest_ = data_digest(*data_);
    state.data = data_digest_;
  }
  if (graph_digest_.empty()) graph_digest_ = graph_digest(model_->program());
  state.graph = graph_digest_;
  state.kernels = text(backend.name(), " ", backend.kernel_class());
  return state;
}

CheckpointContent content_of(const Trainer& trainer, Metadata metadata) {
  const TrainingState state = trainer.training_state();
  CheckpointContent content;
  content.step = state.step;
  content.training = state.json();
  content.recipe = trainer.recipe().json();
  content.metadata = std::move(metadata);
  // One for all: each of them keeps it.
  const auto unchanged = std::make_shared<WeightsGate::Reader>(trainer.model().gate());
  Backend& backend = trainer.model().context().backend();
  for (const auto& [slot, data] : trainer.state_tensors()) {
    const auto copy = [unchanged, &backend, from = data](int64_t first, std::span<std::byte> out) {
      backend.to_host(out.data(), from + first, std::ssize(out));
    };
    SnapshotTensor tensor;
    tensor.name = slot->name;
    tensor.kind = slot->role == Role::parameter ? TensorKind::parameter : TensorKind::optimizer;
    tensor.dtype = slot->type.dtype;
    tensor.shape = slot->type.shape;
    if (backend.is_host_memory()) tensor.bytes = {data, static_cast<size_t>(slot->type.bytes())};
    tensor.copy = copy;
    content.tensors.push_back(std::move(tensor));
  }
  return content;
}

}  // namespace st

#include "train/trainer_state.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/digest.h"
#include "train/run_digests.h"
#include "train/state_tensor.h"

namespace st {
namespace {

constexpr int64_t kDigestPiece = 32768;  // bytes of a digest at a time: what is large comes from the context's memory

}  // namespace

std::vector<StateTensor> Trainer::state_tensors() const { return state_tensors_of(executors()); }

std::string Trainer::state_digest() const {
  Digest digest;
  std::vector<std::byte> chunk;
  for (const StateTensor& tensor : state_tensors()) {
    digest.update_sized(tensor.slot->name);
    digest.update_sized(name_of(tensor.type.dtype));
    digest.update_sized(text(tensor.type.shape));
    for (int64_t first = 0, bytes = tensor.type.bytes(); first < bytes; first += kDigestPiece) {
      chunk.resize(static_cast<size_t>(std::min(kDigestPiece, bytes - first)));
      tensor.to_host(model_->context().backend(), first, chunk);
      digest.update(chunk);
    }
  }
  return digest.hex();
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
  for (const StateTensor& from : trainer.state_tensors()) {
    SnapshotTensor tensor;
    tensor.name = from.slot->name;
    tensor.kind = from.slot->role == Role::parameter ? TensorKind::parameter : TensorKind::optimizer;
    tensor.dtype = from.type.dtype;
    tensor.shape = from.type.shape;
    if (backend.is_host_memory() && from.pieces.size() == 1) tensor.bytes = {from.pieces[0].data, static_cast<size_t>(from.type.bytes())};
    tensor.copy = [unchanged, &backend, from](int64_t first, std::span<std::byte> out) { from.to_host(backend, first, out); };
    content.tensors.push_back(std::move(tensor));
  }
  return content;
}

}  // namespace st

#include "train/trainer_state.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/digest.h"
#include "checkpoint/shared_save.h"
#include "comm/rank_texts.h"
#include "model/rank_pieces.h"
#include "recipe/can_offload.h"
#include "recipe/fast_collectives.h"
#include "train/run_digests.h"
#include "train/save_ranges.h"
#include "train/state_tensor.h"

namespace st {
namespace {

constexpr int64_t kDigestPiece = 32768;  // bytes of a digest at a time: what is large comes from the context's memory

}  // namespace

/// Where ranks that are threads have copies of the parameters, those of the model, which has them whole: a step takes them from there.
std::vector<StateTensor> Trainer::state_tensors() const {
  std::vector<StateTensor> all = state_tensors_of(executors(), others_);
  if (model_->is_sharded() || !threads_have_copies(mesh_of(recipe_), recipe_.zero, options_.parameters_on_host)) return all;
  for (StateTensor& tensor : all) {
    if (tensor.role != Role::parameter) continue;
    const SlotId id = model_->program().slot_named(tensor.name);
    tensor.type = model_->slot(id).type;
    tensor.is_sharded = false;
    tensor.pieces = {{.range = {0, tensor.type.shape.elements()}, .data = model_->data(id)}};
  }
  return all;
}

void Trainer::read_state(const StateTensor& tensor, int64_t first, std::span<std::byte> out) const {
  tensor.to_host(model_->context().backend(), first, out);
  if (!tensor.is_sharded || !is_sharded()) return;
  const int64_t width = bytes_of(tensor.type.dtype);
  for (const StateTensor::Piece& piece : tensor.pieces)
    broadcast_range(*group_, piece.rank, piece.range, first / width, width, out, tensor.name);
}

std::string Trainer::state_digest(ShardedModelCall* collective) const {
  if (collective != nullptr) collective->agree("digest of the state");
  const int64_t changes = model_->gate().changes();
  if (is_sharded()) {
    ranks_->clocks().share_pipeline_times();  // for a report
    // Not by what this rank knows: its weights alone may have changed, or its last digest may have failed.
    int32_t is_new = state_digest_at_ == changes ? 0 : 1;
    group_->all_reduce(&is_new, 1, DType::i32, ReduceOp::max, "whether the state is new");
    if (is_new == 0) {
      state_digest_of_ = changes_of_all_;  // a resume may have failed since, and changed nothing
      return state_digest_;
    }
    state_digest_at_ = -1;
  }
  Digest digest;
  std::vector<std::byte> chunk;
  for (const StateTensor& tensor : state_tensors()) {
    digest.update_sized(tensor.name);
    digest.update_sized(name_of(tensor.type.dtype));
    digest.update_sized(text(tensor.type.shape));
    const int64_t at_a_time = model_->context().backend().transfer_bytes(kDigestPiece);
    for (int64_t first = 0, bytes = tensor.type.bytes(); first < bytes; first += at_a_time) {
      chunk.resize(static_cast<size_t>(std::min(at_a_time, bytes - first)));
      read_state(tensor, first, chunk);
      digest.update(chunk);
    }
  }
  std::string hex = digest.hex();
  if (is_sharded()) {
    state_digest_ = hex;
    state_digest_at_ = changes;
    state_digest_of_ = changes_of_all_;
  }
  return hex;
}

std::string Trainer::known_state_digest(const char* call) const {
  if (!is_sharded()) return state_digest();
  const bool is_known = state_digest_of_ == changes_of_all_ && state_digest_at_ == model_->gate().changes();
  require(is_known, Code::wrong_state, call, ": this rank has only its shards of the state (", sharding_keys(),
          "), which has changed since the last digest of all ranks; call st_trainer_digest_collective on all ranks");
  return state_digest_;
}

std::string Trainer::sharding_keys() const {
  std::string keys;
  const auto add = [&](const char* key, int64_t value, int64_t none) {
    if (value > none) keys += text(keys.empty() ? "" : ", ", key, " ", value);
  };
  add("zero", recipe_.zero, 0);
  add("stages", recipe_.stages, 1);
  add("tensor", recipe_.tensor, 1);
  if (options_.shards_masters) keys += text(", ", recipe_.precision, ", late_parameters");
  return keys;
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
  if (has_fast_collectives(recipe_)) state.kernels += text(" collectives=fast,", recipe_.ranks);  // sums in an order for so many ranks
  return state;
}

namespace {

std::shared_ptr<SharedSave> shared_save(Communicator& ranks) {
  auto save = std::make_shared<SharedSave>();
  save->rank = ranks.rank();
  save->ranks = ranks.size();
  save->deadline = ranks.deadline();
  for (int rank = 0; rank < ranks.size(); ++rank) save->names.push_back(text_of_rank(ranks, rank));
  save->agree = [&ranks](const std::exception_ptr& own) { require_all_fine(ranks, own, "save"); };
  save->text_of_rank_0 = [&ranks](const std::string& own) {
    return gather_texts(ranks, ranks.rank() == 0 ? own : std::string(), "name and folder of the save").front();
  };
  return save;
}

}  // namespace

CheckpointContent content_of(const Trainer& trainer, Metadata metadata) {
  return content_of(trainer, std::move(metadata), trainer.sharding_group_of());
}

CheckpointContent content_of(const Trainer& trainer, Metadata metadata, Communicator* group) {
  const TrainingState state = trainer.training_state();
  CheckpointContent content;
  content.step = state.step;
  content.training = state.json();
  content.recipe = trainer.recipe().json();
  content.metadata = std::move(metadata);
  // One for all: each of them keeps it.
  const auto unchanged = std::make_shared<WeightsGate::Reader>(trainer.model().gate());
  Backend& backend = trainer.model().context().backend();
  const std::shared_ptr<SharedSave> shared = group != nullptr ? shared_save(*group) : nullptr;
  for (const StateTensor& from : trainer.state_tensors()) {
    SnapshotTensor whole;
    whole.name = from.name;
    whole.kind = from.role == Role::parameter ? TensorKind::parameter : TensorKind::optimizer;
    whole.dtype = from.type.dtype;
    whole.shape = from.type.shape;
    const int64_t width = bytes_of(from.type.dtype);
    std::vector<SharedSave::Range> ranges = {{0, 0, from.type.shape.elements()}};
    bool is_exchanged = false;
    if (shared) {
      const SaveRanges of_ranks(from, trainer.plan().program);
      ranges = of_ranks.all();
      is_exchanged = of_ranks.are_exchanged();
      shared->tensors.push_back({whole.name, whole.kind, whole.dtype, whole.shape, ranges});
    }
    for (const auto& [rank, begin, end] : ranges) {
      if (shared && rank != shared->rank) continue;
      SnapshotTensor tensor = whole;
      if (shared) tensor.shape = {end - begin};
      const StateTensor::Piece& piece = from.pieces[0];
      const bool in_one = from.pieces.size() == 1 && piece.data && !piece.range.piece.is_cut();
      if (backend.is_host_memory() && in_one)
        tensor.bytes = {backend.in_host(piece.data + (begin - piece.range.first) * width), static_cast<size_t>((end - begin) * width)};
      if (!is_exchanged)
        tensor.copy = [unchanged, &backend, from, skipped = begin * width](int64_t first, std::span<std::byte> out) {
          from.to_host(backend, skipped + first, out);
        };
      content.tensors.push_back(std::move(tensor));
    }
  }
  content.shared = shared;
  return content;
}

void exchange_ranges(const Trainer& trainer, CheckpointContent& content) {
  const Context& context = trainer.model().context();
  Communicator& group = *trainer.sharding_group_of();
  const std::vector<StateTensor> tensors = trainer.state_tensors();
  std::vector<SaveRanges> exchanged;
  std::vector<std::span<std::byte>> own;  // likewise; empty: this rank writes nothing of it
  content.shared->agree_on([&] {
    int64_t bytes = 0;
    for (const SnapshotTensor& tensor : content.tensors) bytes += tensor.copy ? 0 : tensor.size();
    context.require_memory("save: ranges of tensors that other ranks have", bytes);
    for (const StateTensor& tensor : tensors)
      if (SaveRanges ranges(tensor, trainer.plan().program); ranges.are_exchanged()) {
        exchanged.push_back(std::move(ranges));
        const auto to = std::ranges::find(content.tensors, tensor.name, &SnapshotTensor::name);
        own.emplace_back();
        if (to == content.tensors.end()) continue;
        const auto memory = std::make_shared<Memory>(to->size(), context.memory(), MemoryRole::other);
        own.back() = {memory->data(), static_cast<size_t>(to->size())};
        to->copy = [memory](int64_t first, std::span<std::byte> out) { std::copy_n(memory->data() + first, out.size(), out.data()); };
      }
  });
  for (size_t i = 0; i < exchanged.size(); ++i) exchanged[i].exchange(group, trainer.model().context().backend(), own[i]);
}

}  // namespace st

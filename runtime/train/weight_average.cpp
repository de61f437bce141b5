#include "train/weight_average.h"

#include <algorithm>
#include <array>
#include <utility>

namespace st {

WeightAverage::WeightAverage(Model& model, std::vector<StateTensor> state, Read read) : model_(model), read_(std::move(read)) {
  for (const SlotId parameter : model.parameters()) {
    const auto found = std::ranges::find(state, "average." + model.slot(parameter).name, &StateTensor::name);
    const bool is_kept = found != state.end() && found->role == Role::optimizer;
    averages_.push_back(is_kept ? std::optional(std::move(*found)) : std::nullopt);
    if (model.is_sharded()) weights_.push_back(std::move(*std::ranges::find(state, model.slot(parameter).name, &StateTensor::name)));
  }
}

/// Whether each rank of a sharded model has the same elements of a weight and its average.
bool WeightAverage::is_cut_like_weight(size_t index) const {
  if (weights_.empty() || !weights_[index].is_sharded) return false;
  const Slot& weight = model_.gathers()->slot(model_.parameters()[index]);
  return weight.type.layout.is_flat() == weight.update.is_flat();
}

Address WeightAverage::place_of(size_t index) {
  const std::optional<StateTensor>& average = averages_[index];
  if (!average) {
    const SlotId weight = model_.parameters()[index];
    return on_device(index, model_.data(weight), model_.piece(weight).elements * bytes_of(model_.slot(weight).type.dtype));
  }
  const auto bytes_of_piece = [&](const StateTensor::Piece& piece) { return piece.range.elements * bytes_of(average->type.dtype); };
  if (is_cut_like_weight(index)) {
    const auto is_here = [](const StateTensor::Piece& piece) { return static_cast<bool>(piece.data); };
    const auto own = std::ranges::find_if(average->pieces, is_here);
    return own == average->pieces.end() ? Address() : on_device(index, own->data, bytes_of_piece(*own));
  }
  const bool is_of_processes = read_ && average->is_sharded;
  if (!is_of_processes && average->pieces.size() == 1) return on_device(index, average->pieces[0].data, bytes_of_piece(average->pieces[0]));
  return joined(index, *average);
}

/// Its place, or a copy in the device's memory of what is offloaded.
Address WeightAverage::on_device(size_t index, Address place, int64_t bytes) {
  Backend& backend = model_.context().backend();
  if (bytes == 0 || backend.holds(place, bytes)) return place;
  joined_.resize(averages_.size());
  if (!joined_[index]) {
    model_.context().require_memory("average: a weight", bytes);
    joined_[index] = backend.allocate(bytes, MemoryRole::other);
  }
  backend.copy(joined_[index]->data(), place, bytes);
  return joined_[index]->data();
}

/// A rank without any of the weight takes part in the reads for the others.
Address WeightAverage::joined(size_t index, const StateTensor& tensor) {
  Backend& backend = model_.context().backend();
  const PieceRange weight = model_.piece(model_.parameters()[index]);
  const bool keeps = weight.elements > 0;
  const int64_t width = bytes_of(tensor.type.dtype);
  joined_.resize(averages_.size());
  if (keeps && !joined_[index]) {
    model_.context().require_memory("average: a weight", weight.elements * width);
    joined_[index] = backend.allocate(weight.elements * width, MemoryRole::other);
  }
  std::array<std::byte, 1 << 14> room;
  for (int64_t at = 0, end = tensor.type.shape.elements(); at < end;) {
    const int64_t count = std::min<int64_t>(std::ssize(room) / width, end - at);
    read(tensor, at * width, std::span(room).first(static_cast<size_t>(count * width)));
    weight.each_run_between(at, at + count, [&](int64_t in_whole, int64_t in_range, int64_t elements) {
      backend.to_device(joined_[index]->data() + in_range * width, room.data() + (in_whole - at) * width, elements * width);
    });
    at += count;
  }
  return keeps ? joined_[index]->data() : Address();
}

std::span<const Address> WeightAverage::places() {
  if (!follows_) return {};
  places_.clear();
  for (size_t i = 0; i < averages_.size(); ++i) places_.push_back(place_of(i));
  return places_;
}

/// Collective where processes keep shards: all of them read the same.
void WeightAverage::read(const StateTensor& from, int64_t first, std::span<std::byte> out) const {
  read_ ? read_(from, first, out) : from.to_host(model_.context().backend(), first, out);
}

/// The holder of a parameter's average now; null: the model.
const StateTensor* WeightAverage::tensor_of(SlotId parameter) const {
  const auto index = static_cast<size_t>(std::ranges::find(model_.parameters(), parameter) - model_.parameters().begin());
  if (follows_ && averages_[index]) return &*averages_[index];
  return weights_.empty() ? nullptr : &weights_[index];
}

bool WeightAverage::needs_others(std::string_view parameter) const {
  const StateTensor* const from = tensor_of(model_.parameter_named(parameter));
  return read_ && from != nullptr && from->is_sharded;
}

void WeightAverage::get(std::string_view parameter, const HostView& to, ShardedModelCall* collective) const {
  const SlotId slot = model_.parameter_named(parameter);
  const StateTensor* const from = tensor_of(slot);
  if (from == nullptr) return model_.get(slot, to, collective);
  model_.get_by(slot, to, collective, [&](int64_t first, std::span<std::byte> out) { read(*from, first, out); });
}

void WeightAverage::put_in_model() {
  if (follows_) model_.copy(places());
}

}  // namespace st

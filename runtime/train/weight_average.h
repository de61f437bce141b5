// Access to the exponential moving average of the weights that a training plan keeps (recipe key ema_decay).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "train/state_tensor.h"

namespace st {

class WeightAverage {
 public:
  /// From the tensors "average.<parameter>" of a trainer's state; a parameter without one, because it is not trained, is its own average.
  /// Borrows the model and what the tensors borrow. Before follow() the average is the weights themselves.
  /// `read`: Trainer::read_state, if processes hold the shards; empty: all are in this process.
  using Read = std::function<void(const StateTensor& from, int64_t first, std::span<std::byte> out)>;
  WeightAverage(Model& model, std::vector<StateTensor> state, Read read = {});

  /// Call with true after an update has written the average; with false when the trainer is reset to its start.
  void follow(bool follows = true) { follows_ = follows; }

  /// Device memory of the current average of each of the model's parameters(), in their order; empty: the model's own weights. Sharded
  /// averages are joined in memory that is kept until trim(), and offloaded ones copied there; for a sharded model the places are
  /// those of this rank's shards instead.
  std::span<const Address> places();
  void trim() { joined_.clear(); }
  /// Whether reading one average needs elements of other processes. Throws not_found.
  bool needs_others(std::string_view parameter) const;
  /// Copies one average, like Model::get. Throws not_found.
  void get(std::string_view parameter, const HostView& to, ShardedModelCall* collective = nullptr) const;
  /// Copies the averages into the model's weights. Throws busy like Model::set.
  void put_in_model();

 private:
  const StateTensor* tensor_of(SlotId parameter) const;
  bool is_cut_like_weight(size_t index) const;
  Address place_of(size_t index);
  Address on_device(size_t index, Address place, int64_t bytes);
  Address joined(size_t index, const StateTensor& tensor);
  void read(const StateTensor& from, int64_t first, std::span<std::byte> out) const;

  Model& model_;
  Read read_;
  std::vector<std::optional<StateTensor>> averages_;  // by the model's parameters()
  std::vector<StateTensor> weights_;                  // likewise; only for a sharded model
  std::vector<std::unique_ptr<Buffer>> joined_;       // likewise
  std::vector<Address> places_;
  bool follows_ = false;
};

}  // namespace st

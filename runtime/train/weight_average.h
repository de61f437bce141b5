// The exponential moving average of a model's weights that a training plan keeps (the recipe's ema_decay): where it lies, and its ways out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "train/model.h"
#include "train/state_tensor.h"

namespace st {

class WeightAverage {
 public:
  /// Of the tensors "average.<parameter>" of a trainer's state; a parameter that has none, since it is not trained, is its own average.
  /// Borrows the model and what the tensors borrow. Until follow() the weights themselves are their average.
  /// `read`: as Trainer::read_state, where processes have the pieces; empty: all are here.
  using Read = std::function<void(const StateTensor& from, int64_t first, std::span<std::byte> out)>;
  WeightAverage(Model& model, std::vector<StateTensor> state, Read read = {});

  /// An update has made the average; or, of a trainer that is put back to where it began, none has.
  void follow(bool follows = true) { follows_ = follows; }

  /// Device memory of each of the model's parameters(), in their order, as they are now; empty: the model's own. What ranks have in pieces
  /// is put together here, in memory that stays until trim(), but for a model in pieces, of which they are this rank's.
  std::span<const std::byte* const> places();
  void trim() { joined_.clear(); }
  /// Copies one out, as Model::get. Throws not_found.
  void get(std::string_view parameter, const HostView& to, JointCall* joint = nullptr) const;
  /// Makes the averages the model's weights. Throws busy as Model::set.
  void put_in_model();

 private:
  const std::byte* place_of(size_t index);
  const std::byte* joined(size_t index, const StateTensor& tensor);
  void read(const StateTensor& from, int64_t first, std::span<std::byte> out) const;

  Model& model_;
  Read read_;
  std::vector<std::optional<StateTensor>> averages_;  // by the model's parameters()
  std::vector<StateTensor> weights_;                  // likewise; of a model in pieces
  std::vector<std::unique_ptr<Buffer>> joined_;       // likewise
  std::vector<const std::byte*> places_;
  bool follows_ = false;
};

}  // namespace st

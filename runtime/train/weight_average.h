// The exponential moving average of a model's weights that a training plan keeps (the recipe's ema_decay): where it lies, and its ways out.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "exec/executor.h"
#include "train/model.h"

namespace st {

class WeightAverage {
 public:
  /// Of the slots "average.<parameter>" of the executor's plan; a parameter that has none, since it is not trained, is its own average.
  /// Borrows both. Until follow() the weights themselves are their average.
  WeightAverage(Model& model, const Executor& executor);

  /// An update has made the average; or, of a trainer that is put back to where it began, none has.
  void follow(bool follows = true) { follows_ = follows; }

  /// Device memory of each of the model's parameters(), in their order; empty: the model's own.
  std::span<const std::byte* const> places() const { return follows_ ? places_ : std::span<const std::byte* const>(); }
  /// Copies one out, as Model::get. Throws not_found.
  void get(std::string_view parameter, const HostView& to) const;
  /// Makes the averages the model's weights. Throws busy as Model::set.
  void put_in_model();

 private:
  Model& model_;
  std::vector<const std::byte*> places_;
  bool follows_ = false;
};

}  // namespace st

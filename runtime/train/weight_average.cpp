#include "train/weight_average.h"

#include <algorithm>

#include "passes/average.h"

namespace st {

WeightAverage::WeightAverage(Model& model, const Executor& executor) : model_(model) {
  for (const SlotId parameter : model.parameters()) {  // a plan's first slots are the model's
    const SlotId average = average_of(executor.plan().program, parameter);
    places_.push_back(average < 0 ? model.data(parameter) : executor.slot(average).as<const std::byte>());
  }
}

void WeightAverage::get(std::string_view parameter, const HostView& to) const {
  const SlotId slot = model_.parameter_named(parameter);
  const auto index = static_cast<size_t>(std::ranges::find(model_.parameters(), slot) - model_.parameters().begin());
  model_.get(slot, to, follows_ ? places_[index] : model_.data(slot));
}

void WeightAverage::put_in_model() {
  if (follows_) model_.copy(places_);
}

}  // namespace st

// All that a host reads of a trainer between its steps: evaluations, weights, averages, gradients, digests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/sharded_model_call.h"
#include "rank_training.h"

namespace st {

struct ShownToHost {
  std::vector<double> losses;
  std::vector<std::vector<float>> values;
  std::string state, weights;
  bool operator==(const ShownToHost&) const = default;
};

/// Reads before, between and after four steps, sets a weight and uses the averages. `own`: this rank's end of a group; null: ranks are
/// threads. Parameters whose name begins with `frozen` have no gradient.
inline ShownToHost shown_to_host(Trainer& trainer, Communicator* own, std::string_view frozen = "-") {
  const auto data =
      std::make_shared<Sequences>(5, trainer.model().slot(trainer.model().program().slot_named("tokens")).type.shape[1], kVocabulary);
  ShownToHost shown;
  const auto collectively = [&](const std::function<void(ShardedModelCall*)>& call) {
    own == nullptr ? call(nullptr) : ShardedModelCall::make(own, call);
  };
  const auto keep = [&](const Slot& slot, const std::function<void(const HostView&)>& get) {
    shown.values.emplace_back(static_cast<size_t>(slot.type.shape.elements()));
    get(plain_view("", DType::f32, slot.type.shape, shown.values.back().data()));
  };
  const auto look = [&] {
    shown.losses.push_back(trainer.evaluate(data).loss);
    shown.losses.push_back(trainer.evaluate_average(data).loss);
    for (const SlotId id : trainer.model().parameters()) {
      const Slot& slot = trainer.model().slot(id);
      keep(slot, [&](const HostView& to) { trainer.average(slot.name, to); });
      if (trainer.steps() > 0 && !slot.name.starts_with(frozen)) keep(slot, [&](const HostView& to) { trainer.gradient(slot.name, to); });
      collectively([&](ShardedModelCall* all) { keep(slot, [&](const HostView& to) { trainer.model().get(id, to, all); }); });
    }
    collectively([&](ShardedModelCall* all) { shown.weights += trainer.model().digest(all); });
  };
  look();
  trainer.step();
  trainer.step();
  look();
  const SlotId id = trainer.model().parameter_named("token_embedding.weight");
  const Shape& shape = trainer.model().slot(id).type.shape;
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1e-4 * static_cast<double>(i);
  trainer.model().set(id, plain_view("", DType::f64, shape, values.data()));
  trainer.step();
  trainer.use_average();
  trainer.trim();
  look();
  trainer.step();
  shown.state = trainer.state_digest();
  return shown;
}

}  // namespace st

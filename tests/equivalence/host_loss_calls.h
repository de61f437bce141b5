// Steps of a small GPT whose loss the host computes, by forward, backward and apply.
#pragma once

#include <bit>
#include <cmath>
#include <vector>

#include "rank_training.h"

namespace st {

constexpr int64_t kPairs = 6;  // micro-batches of a step

enum class By { host, graph };

/// One micro-batch of two rows. `batch` has the targets too if the graph's own loss is used.
inline void run_pair_on(Trainer& trainer, int64_t k, By by, float times = 0.01F) {
  const TokenRows all(64, trainer.model().slot(trainer.model().program().slot_named("tokens")).type.shape.last(), kVocabulary);
  const std::vector<HostView> batch = all.rows(2 * (k % 32), 2);
  const auto outputs = trainer.forward(by == By::graph ? std::span(batch) : std::span(batch).first(1));
  if (by == By::graph) return trainer.backward_own_loss();
  std::vector<std::vector<float>> values;
  std::vector<HostView> gradients;
  for (const HostView& output : outputs) {
    const auto* from = static_cast<const float*>(output.data);
    std::vector<float>& to = values.emplace_back(static_cast<size_t>(output.shape.elements()));
    for (size_t i = 0; i < to.size(); ++i) to[i] = times * (from[i] - static_cast<float>(i % 5) * 0.1F);
    gradients.push_back(plain_view(output.name, DType::f32, output.shape, to.data()));
  }
  trainer.backward(gradients);
}

/// Four steps of `pairs` micro-batches, of which data rank `rank` of `size` runs every size-th.
inline Outcome outcome_of_calls(Trainer& trainer, int64_t pairs, By by, int64_t rank = 0, int64_t size = 1) {
  Outcome outcome;
  for (int step = 0; step < kSteps; ++step) {
    for (int64_t k = rank; k < pairs; k += size) run_pair_on(trainer, step * pairs + k, by);
    add(outcome, trainer.apply());
  }
  for (uint64_t& bits : outcome.told)
    if (std::isnan(std::bit_cast<double>(bits))) bits = 0;  // the loss, which the trainer does not know
  outcome.state = trainer.state_digest();
  return outcome;
}

}  // namespace st

// Gradient accumulation by itself, over the program's own gradients.
#pragma once

#include <scaletrain/accumulator.h>

#include <scaletrain/context.hpp>
#include <scaletrain/view.hpp>
#include <vector>

namespace scaletrain {

/// Borrows the gradients until it is closed. A step is backward and add(), again and again until should_step().
class Accumulator : public detail::Handle<st_accumulator, st_accumulator_destroy> {
 public:
  /// steps: micro-batches of a step; gradients: the arrays that each backward writes.
  Accumulator(const Context& context, int64_t steps, const std::vector<View>& gradients) : Handle(detail::Access::host(context)) {
    std::vector<st_view> raw;
    raw.reserve(gradients.size());
    for (const View& gradient : gradients) raw.push_back(detail::writable("Accumulator", gradient).raw());
    done(st_accumulator_create(context.get(), steps, static_cast<int64_t>(raw.size()), raw.data(), out()));
  }

  /// Adds the gradient of a micro-batch's summed loss; weight: its tokens, 0: it is empty. The last of a step leaves the gradient of the
  /// mean over all tokens in the arrays.
  void add(double weight) const { done(st_accumulator_add(get(), weight)); }
  /// Whether the arrays hold the gradient of the step: use it, or reduce it between ranks, now.
  bool should_step() const {
    int32_t yes = 0;
    done(st_accumulator_should_step(get(), &yes));
    return yes != 0;
  }
  /// Tokens of the step so far.
  double weight() const {
    double weight = 0;
    done(st_accumulator_weight(get(), &weight));
    return weight;
  }
  /// Forgets the micro-batches of this step.
  void reset() const { done(st_accumulator_reset(get())); }
  /// Between two steps only.
  void set_steps(int64_t steps) const { done(st_accumulator_set_steps(get(), steps)); }
  /// The accumulator's own memory, for a checkpoint in the middle of a step; written to, it goes on from there.
  Views state() const {
    int64_t n = 0;
    const st_named_view* views = nullptr;
    done(st_accumulator_state_views(get(), &n, &views));
    return Views(n, views);
  }
};

}  // namespace scaletrain

// Gradient accumulation without a trainer, over the program's own gradients.
#pragma once

#include <scaletrain/accumulator.h>

#include <scaletrain/context.hpp>
#include <scaletrain/view.hpp>
#include <vector>

namespace scaletrain {

/// Borrows the gradients until it is closed. A step is backward and add(), repeated until should_step().
class Accumulator : public detail::Handle<st_accumulator, st_accumulator_destroy> {
 public:
  /// steps: micro-batches of a step; gradients: the arrays that each backward overwrites.
  Accumulator(const Context& context, int64_t steps, const std::vector<View>& gradients) : Handle(detail::Access::host(context)) {
    std::vector<st_view> raw;
    raw.reserve(gradients.size());
    for (const View& gradient : gradients) raw.push_back(detail::writable("Accumulator", gradient).raw());
    done(st_accumulator_create(context.get(), steps, static_cast<int64_t>(raw.size()), raw.data(), out()));
  }

  /// Adds the gradient of a micro-batch's summed loss; weight: its tokens, 0 if it is empty. The step's last add writes the gradient of the
  /// mean over all tokens into the arrays.
  void add(double weight) const { done(st_accumulator_add(get(), weight)); }
  /// Whether the step is complete and the arrays hold its gradient: use it now, or reduce it between ranks.
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
  /// Drops the micro-batches added in this step.
  void reset() const { done(st_accumulator_reset(get())); }
  /// Between two steps only.
  void set_steps(int64_t steps) const { done(st_accumulator_set_steps(get(), steps)); }
  /// The accumulator's own memory, for a checkpoint in the middle of a step. Write a saved state into it to resume.
  Views state() const {
    int64_t n = 0;
    const st_named_view* views = nullptr;
    done(st_accumulator_state_views(get(), &n, &views));
    return Views(n, views);
  }
};

}  // namespace scaletrain

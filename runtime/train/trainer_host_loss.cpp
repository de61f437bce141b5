// A trainer's step whose loss the host computes.
#include "base/error.h"
#include "train/trainer.h"

namespace st {

void Trainer::require_host_loss_fits(const char* call) const {
  if (recipe_.ranks == 1) return;
  require(group_ != nullptr, Code::unsupported, call, ": a host's own loss is not supported on ", recipe_.ranks,
          " ranks that are threads of one trainer, because each would have its own outputs; compute it in an op of the host that the "
          "graph's loss reads (st_op_register), or make each a rank of a communicator with st_trainer_create_in_group");
  require(!options_.shards_masters, Code::unsupported, call,
          ": a host's own loss is not supported with sharded master weights; make the context without late_parameters");
}

/// A forward, for whose first one it begins the step.
template <class Call>
auto Trainer::forward_by(std::span<const HostView> batch, const Call& call) {
  if (!host_step_->is_open()) require_whole_step("forward");
  cancelled_.begin();
  return undoing_on_error([&] {
    require_host_loss_fits("forward");
    if (!host_step_->is_open()) {
      host_step_->begin(batch, learning_rate(), loss_scale());
      ranks_->begin_host_loss(attempts_);
      gradients_.executor = nullptr;
    }
    return call();
  });
}

std::span<const HostView> Trainer::forward(std::span<const HostView> batch) {
  return forward_by(batch, [&] { return host_step_->forward(batch, attempts_); });
}

void Trainer::forward_into(std::span<const HostView> batch, std::span<const HostView> outputs) {
  forward_by(batch, [&] { host_step_->forward_into(batch, attempts_, outputs); });
}

void Trainer::backward(std::span<const HostView> output_gradients) {
  if (open_) require_whole_step("backward");
  cancelled_.begin();
  undoing_on_error([&] { host_step_->backward(output_gradients); });
}

void Trainer::backward_own_loss() {
  if (open_) require_whole_step("backward");
  cancelled_.begin();
  undoing_on_error([&] { host_step_->backward_own_loss(); });
}

StepReport Trainer::apply() {
  if (open_) require_whole_step("apply");
  cancelled_.begin();
  return undoing_on_error([&] {
    if (cancelled_.take()) fail(Code::cancelled, "apply: cancelled; the state is that of the last whole step");
    const auto compare = [this](const Executor& executor) { ranks_->compare_weights(executor); };
    HostLossStep::Done done;
    try {
      done = host_step_->apply(updates_ + 1, compare);
    } catch (const std::exception&) {
      note_mixed_state(is_sharded() && host_step_->is_updating());
      throw;
    }
    ranks_->end_host_loss({.exposed = done.loss->exposed_seconds(), .queue = done.loss->exchanges()});
    gradients_ = {&done.loss->executor(), done.loss->unit()};
    StepReport report = report_of(done.loss->slots(), done.lr, done.seconds, done.tokens);
    report.loss = last_loss_ = done.mean_loss;
    report_exchange(report);
    return report;
  });
}

}  // namespace st

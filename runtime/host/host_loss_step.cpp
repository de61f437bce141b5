#include "host/host_loss_step.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/os/machine.h"

namespace st {

HostLossStep::HostLossStep(const Parts& parts, const PlanOptions& options) : parts_(parts), options_(options) {
  if (parts.beside == nullptr) make(false);
}

HostLoss& HostLossStep::make(bool own_loss) {
  auto& made = losses_[own_loss ? 1 : 0];
  if (!made)
    made = std::make_unique<HostLoss>(
        HostLoss::Parts{parts_.model, parts_.recipe, parts_.storage, parts_.workers, parts_.cancelled,
                        parts_.beside != nullptr ? &parts_.beside->executor().plan() : nullptr, parts_.ranks, parts_.others},
        own_loss, options_);
  return *made;
}

HostLoss& HostLossStep::loss_for(std::span<const HostView> batch) {
  const std::vector<Slot>& slots = parts_.model.program().slots;
  const auto is_given = [&](size_t input) {
    return !parts_.inputs[input] || std::ranges::find(batch, slots[input].name, &HostView::name) != batch.end();
  };
  bool own_loss = parts_.beside != nullptr;
  for (size_t s = 0; s < slots.size(); ++s) own_loss = own_loss && is_given(s);
  return make(own_loss);
}

void HostLossStep::begin(std::span<const HostView> batch, double lr, double loss_scale) {
  HostLoss& loss = loss_for(batch);
  loss.begin(loss_scale);
  begun_ = os::seconds();
  lr_ = lr;
  is_updating_ = false;
  open_ = &loss;
}

std::span<const HostView> HostLossStep::forward(std::span<const HostView> batch, int64_t attempts) {
  const WeightsGate::Reader whole_step(parts_.model.gate());
  return open_->forward(batch, attempts);
}

void HostLossStep::forward_into(std::span<const HostView> batch, int64_t attempts, std::span<const HostView> outputs) {
  const WeightsGate::Reader whole_step(parts_.model.gate());
  open_->forward_into(batch, attempts, outputs);
}

HostLoss& HostLossStep::open() {
  require(is_open(), Code::wrong_state, "backward: there is no forward pass; call st_trainer_forward first");
  return *open_;
}

void HostLossStep::backward(std::span<const HostView> gradients) {
  HostLoss& loss = open();
  const WeightsGate::Reader whole_step(parts_.model.gate());
  loss.backward(gradients);
}

void HostLossStep::backward_own_loss() {
  HostLoss& loss = open();
  const WeightsGate::Reader whole_step(parts_.model.gate());
  loss.backward_own_loss();
}

HostLossStep::Done HostLossStep::apply(int64_t number, const std::function<void(const Executor&)>& before_update) {
  require(is_open() && open_->pairs() > 0, Code::wrong_state,
          "apply: there is no gradient; call st_trainer_forward and st_trainer_backward first");
  HostLoss& loss = *open_;
  loss.meet(lr_, number);
  if (before_update) before_update(loss.executor());
  {
    const WeightsGate::Updating weights(parts_.model.gate(), false);
    is_updating_ = true;
    loss.update(lr_, number);
    is_updating_ = false;
  }
  open_ = nullptr;
  const StepSlots& slots = loss.slots();
  const int64_t tokens = parts_.beside != nullptr ? parts_.beside->micro_batch_tokens() : parts_.recipe.batch;
  return {.loss = &loss,
          .lr = lr_,
          .seconds = os::seconds() - begun_,
          .mean_loss = loss.used_own_loss() ? slots.loss_sum.get() / slots.loss_count.get() : std::numeric_limits<double>::quiet_NaN(),
          .tokens = tokens * loss.pairs_of_all()};
}

int64_t HostLossStep::own_bytes() const {
  int64_t sum = 0;
  for (const auto& loss : losses_)
    if (loss) sum += loss->own_bytes();
  return sum;
}

}  // namespace st

// The numbers that the host writes before a step and reads after it, in the device memory of an executor.
#pragma once

#include "exec/executor.h"

namespace st {

/// The memory of a small slot. Each call copies, in the order of the executor's work: get() waits for it.
template <class T>
class StepNumber {
 public:
  StepNumber() = default;
  StepNumber(Executor& executor, Address place) : executor_(&executor), place_(place) {}

  bool exists() const { return executor_ != nullptr; }  // false: the program has no such slot
  T get() const {
    T value{};
    executor_->read(&value, place_, sizeof value);
    return value;
  }
  T get_or(T none) const { return exists() ? get() : none; }
  void set(T value) const { set(0, value); }
  void set(int64_t i, T value) const { executor_->write(place_ + i * static_cast<int64_t>(sizeof value), &value, sizeof value); }

 private:
  Executor* executor_ = nullptr;
  Address place_;
};

/// Meanings and types are StepSlotIds' (ir/program.h).
struct StepSlots {
  StepNumber<double> rates, loss_scale, own_loss_seed, gradient_unit;
  StepNumber<int64_t> counters;
  StepNumber<double> loss_sum, loss_count, grad_norm;
  StepNumber<bool> skipped;
  StepNumber<double> first_norm, first_loss_count;

  StepSlots() = default;
  explicit StepSlots(Executor& executor) {
    const StepSlotIds& step = executor.plan().program.step;
    const auto bind = [&]<class T>(StepNumber<T>& number, SlotId slot) {
      if (slot >= 0) number = {executor, executor.slot(slot).data};
    };
    bind(rates, step.rates);
    bind(loss_scale, step.loss_scale);
    bind(own_loss_seed, step.own_loss_seed);
    bind(gradient_unit, step.gradient_unit);
    bind(counters, step.counters);
    bind(loss_sum, step.loss_sum);
    bind(loss_count, step.loss_count);
    bind(grad_norm, step.grad_norm);
    bind(skipped, step.skipped);
    bind(first_norm, step.first_norm);
    bind(first_loss_count, step.first_loss_count);
  }
};

}  // namespace st

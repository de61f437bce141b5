// The numbers that the host writes before a step and reads after it, in the memory of an executor.
#pragma once

#include "exec/executor.h"

namespace st {

/// Null: the program has no such slot. Meanings and types are StepSlotIds' (ir/program.h).
struct StepSlots {
  double* rates = nullptr;
  double* loss_scale = nullptr;
  double* own_loss_seed = nullptr;
  double* gradient_unit = nullptr;
  int64_t* counters = nullptr;
  double* loss_sum = nullptr;
  double* loss_count = nullptr;
  double* grad_norm = nullptr;
  bool* skipped = nullptr;
  double* first_norm = nullptr;
  double* first_loss_count = nullptr;

  StepSlots() = default;
  explicit StepSlots(const Executor& executor) {
    const StepSlotIds& step = executor.plan().program.step;
    const auto bind = [&]<class T>(T*& number, SlotId slot) {
      if (slot >= 0) number = executor.slot(slot).as<T>();
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

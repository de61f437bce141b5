// The few numbers that the host writes before a step and reads after it, found once by name.
#pragma once

#include "exec/executor.h"

namespace st {

struct StepSlots {
  double* rates = nullptr;       // learning rate, number of this update from 1
  double* loss_scale = nullptr;  // none without loss scaling
  int64_t* counters = nullptr;   // attempts, first row of the micro-batch; none without dropout
  double* loss_sum = nullptr;    // none without a loss in the program
  double* loss_count = nullptr;  // likewise
  double* grad_norm = nullptr;
  bool* skipped = nullptr;
  double* first_norm = nullptr;        // none where nobody asks for the gradient noise scale
  double* first_loss_count = nullptr;  // likewise

  StepSlots() = default;
  explicit StepSlots(const Executor& executor)
      : rates(find<double>(executor, "rates")),
        loss_scale(find<double>(executor, "loss_scale")),
        counters(find<int64_t>(executor, "counters")),
        loss_sum(find<double>(executor, "loss_sum")),
        loss_count(find<double>(executor, "loss_count")),
        grad_norm(find<double>(executor, "grad_norm")),
        skipped(find<bool>(executor, "skipped")),
        first_norm(find<double>(executor, "first_norm")),
        first_loss_count(find<double>(executor, "first_loss_count")) {}

  /// Null: the program has no such slot; a parameter or an input of the host's may have the name.
  template <class T>
  static T* find(const Executor& executor, std::string_view name) {
    const Program& program = executor.plan().program;
    const SlotId slot = program.slot_named(name);
    if (slot < 0) return nullptr;
    const Role role = program.slots[static_cast<size_t>(slot)].role;
    return role == Role::control || role == Role::report ? executor.slot(slot).as<T>() : nullptr;
  }
};

}  // namespace st

// The numbers of a step from its rate and its number, which are in the device's memory: in fp64 with the cpu's operations, rounded once.
#pragma once

#include <cmath>

#include <device/threads.h>

#include "backend/cuda/update_numbers.h"
#include "base/whole_power.h"

namespace st::cuda {

DEVICE float rounded(double x) { return static_cast<float>(x); }

DEVICE void set_adamw(UpdateNumbers& n, const UpdateAttrs& of, double rate, double number) {
  const auto steps = static_cast<uint64_t>(number);
  const double unbias1 = 1 / (1 - whole_power(of.beta1, steps));
  n.step = rounded(rate * unbias1);
  n.penalty = rounded(of.decoupled ? 0 : of.weight_decay);
  n.shrink = rounded(of.decoupled ? of.weight_decay / unbias1 : 0);
  n.keep1 = rounded(of.beta1);
  n.take1 = rounded(1 - of.beta1);
  n.keep2 = rounded(of.beta2);
  n.take2 = rounded(1 - of.beta2);
  n.unbias2 = rounded(1 / sqrt(1 - whole_power(of.beta2, steps)));
}

DEVICE void set_sgd(UpdateNumbers& n, const UpdateAttrs& of, double rate, double number) {
  const bool is_first = number == 1;
  n.step = rounded(rate);
  n.penalty = rounded(of.weight_decay);
  n.momentum = rounded(of.momentum);
  n.keep1 = is_first ? 0 : n.momentum;
  n.take1 = rounded(is_first ? 1 : 1 - of.dampening);
}

DEVICE void set_lion(UpdateNumbers& n, const UpdateAttrs& of, double rate) {
  constexpr float kLift = 0x1p32F;  // else the smallest directions would fall below the normal range and lose their sign
  n.step = rounded(rate);
  n.shrink = rounded(of.weight_decay);
  n.keep1 = rounded(of.beta1) * kLift;
  n.take1 = rounded(1 - of.beta1) * kLift;
  n.keep2 = rounded(of.beta2);
  n.take2 = rounded(1 - of.beta2);
}

DEVICE void set_rmsprop(UpdateNumbers& n, const UpdateAttrs& of, double rate) {
  n.step = rounded(rate);
  n.penalty = rounded(of.weight_decay);
  n.keep2 = rounded(of.beta2);
  n.take2 = rounded(1 - of.beta2);
  n.momentum = rounded(of.momentum);
}

DEVICE void set_adagrad(UpdateNumbers& n, const UpdateAttrs& of, double rate, double number) {
  n.step = rounded(rate / (1 + (number - 1) * of.rate_decay));
  n.penalty = rounded(of.weight_decay);
  n.initial = rounded(number == 1 ? of.initial : 0);
}

/// One thread. `rates`: as of the optimizer ops.
KERNEL(1)
set_update_numbers(UpdateAttrs of, const double* rates, UpdateNumbers* to) {
  const double rate = rates[0] * of.lr_scale, number = rates[1];
  UpdateNumbers n;
  n.most = rounded(of.most);
  n.epsilon = rounded(of.epsilon);
  switch (of.rule) {
    case UpdateRule::adamw:
      set_adamw(n, of, rate, number);
      break;
    case UpdateRule::sgd:
      set_sgd(n, of, rate, number);
      break;
    case UpdateRule::lion:
      set_lion(n, of, rate);
      break;
    case UpdateRule::rmsprop:
      set_rmsprop(n, of, rate);
      break;
    case UpdateRule::adagrad:
      set_adagrad(n, of, rate, number);
      break;
  }
  *to = n;
}

}  // namespace st::cuda

// Losses over pairs (x, target) with optional weights per element: sum = sum w f(x, t), count = sum w (without weights: elements).
#pragma once

#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/strides.h"

namespace st::reference {

/// in: x target weights?; out: sum count
template <class Loss>
void pair_loss(const Call& call, Loss loss) {
  const Operand &x = call.in[0], &target = call.in[1];
  const bool weighted = call.in.size() > 2;
  const Strides of_target = stretched(target.shape, x.shape), of_weight = weighted ? stretched(call.in[2].shape, x.shape) : Strides{};
  double sum = 0, count = 0;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double weight = weighted ? get(call.in[2], place(i, x.shape, of_weight)) : 1;
    sum += weight * loss(get(x, i), get(target, place(i, x.shape, of_target)));
    count += weight;
  }
  set(call.out[0], 0, sum);
  set(call.out[1], 0, count);
}

/// in: x target dsum weights?; out: dx. `slope` is the derivative of the loss with respect to x.
template <class Slope>
void pair_loss_backward(const Call& call, Slope slope) {
  const Operand &x = call.in[0], &target = call.in[1], &dx = call.out[0];
  const bool weighted = call.in.size() > 3;
  const Strides of_target = stretched(target.shape, x.shape), of_weight = weighted ? stretched(call.in[3].shape, x.shape) : Strides{};
  const double seed = get(call.in[2], 0);
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double weight = weighted ? get(call.in[3], place(i, x.shape, of_weight)) : 1;
    set(dx, i, seed * weight * slope(get(x, i), get(target, place(i, x.shape, of_target))));
  }
}

}  // namespace st::reference

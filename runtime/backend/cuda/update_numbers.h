// The numbers of a step that the kernel of an elementwise optimizer reads, as the rules of update.cuh use them.
#pragma once

#include <cstdint>

namespace st::cuda {

/// Those that an op has no use for are 0.
struct UpdateNumbers {
  float most = 0;  // the largest magnitude of an element of the gradient
  float step = 0, penalty = 0, shrink = 0, epsilon = 0;
  float keep1 = 0, take1 = 0, keep2 = 0, take2 = 0, unbias2 = 0;
  float momentum = 0, initial = 0;
};

enum class UpdateRule : int32_t { adamw, sgd, lion, rmsprop, adagrad };

/// The attributes of an optimizer; those that it has not are 0.
struct UpdateAttrs {
  UpdateRule rule = UpdateRule::adamw;
  bool decoupled = false;
  double most = 0, epsilon = 0;  // limited by update_limits.h
  double lr_scale = 0, weight_decay = 0, beta1 = 0, beta2 = 0, momentum = 0, dampening = 0, rate_decay = 0, initial = 0;
};

}  // namespace st::cuda

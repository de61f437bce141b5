// The numbers of a step that the kernel of an elementwise optimizer reads: the op's attributes, the learning rate and the number of the
// update, as the rules of update.cuh use them. Computed by the host in fp64 and rounded once, as the cpu backend does.
#pragma once

#include "ir/op.h"

namespace st::cuda {

/// Those that an op has no use for are 0.
struct UpdateNumbers {
  float most = 0;  // the largest magnitude of an element of the gradient
  float step = 0, penalty = 0, shrink = 0, epsilon = 0;
  float keep1 = 0, take1 = 0, keep2 = 0, take2 = 0, unbias2 = 0;
  float momentum = 0, initial = 0;
};

/// `number`: index of this update, from 1. Throws internal for an op that is no elementwise optimizer.
UpdateNumbers update_numbers(Op op, const Attrs& attrs, double rate, double number);

}  // namespace st::cuda

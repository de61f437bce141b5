// The kernels of each op.
#pragma once

#include "backend/cuda/kernel_queue.h"
#include "backend/kernel_call.h"

namespace st::cuda {

/// Gives the kernels of an op to a stream. What `call` refers to is read within this call, memory later, in the stream's order.
using EnqueueOp = void (*)(const KernelQueue& queue, Op op, const Call& call);

/// Null: there are none.
EnqueueOp kernels_of(Op op);

/// Decides whose kernels compute the products of an op, if it has any, and makes what they need; its device is the current one.
void choose_products(ProductChoices& choices, Op op, const Call& call);

}  // namespace st::cuda

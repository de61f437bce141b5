// How a backend in host memory runs an op of the host's own: a call on the calling thread with views of the operands.
#pragma once

#include "backend/backend.h"

namespace st {

/// Kernels of `host` and `host_backward`. Throw Error(Code::callback) with the op's name and a status other than 0. Allocate nothing.
void call_host_forward(const Call& call);
void call_host_backward(const Call& call);

}  // namespace st

// How every backend of this machine's memory runs an op of the host's own: by a call on the calling thread, with views of the operands.
#pragma once

#include "backend/backend.h"

namespace st {

/// Kernels of `host` and `host_backward`. Throw Error(Code::callback) with the op's name and the status that is not 0; allocate nothing.
void call_host_forward(const Call& call);
void call_host_backward(const Call& call);

}  // namespace st

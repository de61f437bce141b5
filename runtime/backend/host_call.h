// How backends run an op of the host's own: a call on the calling thread with views of the operands.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace st {

/// Kernels of `host` and `host_backward`. Throw Error(Code::callback) with the op's name and a status other than 0. Allocate nothing.
void call_host_forward(const Call& call);
void call_host_backward(const Call& call);

/// The same for Op::host and Op::host_backward on any device of its own memory, which has no kernels for them: with pinned copies of the
/// operands. Waits for the stream, which copies the results to the device afterwards. Borrows the call.
std::unique_ptr<Prepared> prepare_host_call(Backend& backend, Op op, const Call& call);

}  // namespace st

// Whether operands are in the memory of the device that gets them.
#pragma once

#include <string_view>

#include "backend/backend.h"
#include "ir/op.h"

namespace st {

/// Throws invalid_argument, with `op`, `what` it is of, the operand and the device, for an operand of another device. One that has no
/// address yet, or no elements, is none.
void require_on_device(const Backend& backend, const Call& call, Op op, std::string_view what);
/// The same for one place.
void require_on_device(const Backend& backend, Address place, int64_t bytes, std::string_view what);

}  // namespace st

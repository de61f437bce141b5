// Parameters that are not trained.
#pragma once

#include <functional>

#include "ir/program.h"

namespace st {

/// Parameters for which `is_frozen` holds get no gradient and no update. Throws invalid_argument if every parameter is frozen. Call before
/// autodiff().
void freeze(Program& program, const std::function<bool(const Slot& parameter)>& is_frozen);

}  // namespace st

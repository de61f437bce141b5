// Parameters that are not trained.
#pragma once

#include <functional>

#include "ir/program.h"

namespace st {

/// Parameters for which `is_frozen` holds take no gradient and no update. Throws invalid_argument when none is left that could. Call before
/// autodiff().
void freeze(Program& program, const std::function<bool(const Slot& parameter)>& is_frozen);

}  // namespace st

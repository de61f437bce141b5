// The memory of a plan in a line, for the error of a step that does not fit.
#pragma once

#include <string>

#include "plan/plan.h"

namespace st {

/// "stash 1.20 GiB, optimizer 400 MiB, gradients 200 MiB; the largest tensor is the result of linear in head, 785 MiB": the largest arenas
/// of the memory that kernels use, and the largest tensor in them.
std::string memory_summary(const Plan& plan);

}  // namespace st

// Which instructions make copies of weights.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace st {

/// By section and node: the copy that a node makes by packing a weight, storing its working copy, or computing what is stored. Nodes that
/// run in the first micro-batch for another reason make none: gradients begin there, and their noise is measured.
std::vector<std::vector<Copy>> weight_copies(const Program& program);

}  // namespace st

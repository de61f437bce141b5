// Digests of a run's model and data, to check that a checkpoint is resumed with those it was saved with.
#pragma once

#include <string>

#include "data/dataset.h"
#include "ir/program.h"

namespace st {

/// XXH3-128 over the printed graph: ops with attributes, parameters with initialisation, inputs, outputs. Equal for equal graphs of one
/// library version; another version may print differently.
std::string graph_digest(const Program& model);

/// XXH3-128 over up to 16 evenly spaced rows, including the first and the last. "" for rows from a host callback, which is not called just
/// for this.
std::string data_digest(const Dataset& data);

}  // namespace st

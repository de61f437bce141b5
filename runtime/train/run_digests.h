// What a run is of, in a few digits each: whether a checkpoint is resumed on the model and the data that it was saved with.
#pragma once

#include <string>

#include "data/dataset.h"
#include "ir/program.h"

namespace st {

/// XXH3-128 over the model's graph as it prints: ops with their attributes, parameters with their initialization, inputs, outputs. Equal
/// graphs of one library version have the same; another version may print in other words.
std::string graph_digest(const Program& model);

/// XXH3-128 over up to 16 rows, spread evenly, the first and the last among them; "" for rows of the host's making, which are not asked for
/// only to be looked at.
std::string data_digest(const Dataset& data);

}  // namespace st

// Prints a checkpoint for people: the output of `scaletrain checkpoint inspect`.
#pragma once

#include <string>

#include "options.h"

namespace cli {

/// `manifest`: from st_checkpoint_inspect.
void print_checkpoint(const Json& manifest);

/// `weights`: from st_weights_inspect. Prints the files with their metadata, and all tensors.
void print_weights(const Json& weights);

}  // namespace cli

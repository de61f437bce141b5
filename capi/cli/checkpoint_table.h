// A checkpoint for people: what `scaletrain checkpoint inspect` prints.
#pragma once

#include <string>

#include "options.h"

namespace cli {

/// `manifest`: st_checkpoint_inspect's.
void print_checkpoint(const Json& manifest);

/// Of st_weights_inspect's answer: files with their metadata, and all tensors.
void print_weights(const Json& weights);

}  // namespace cli

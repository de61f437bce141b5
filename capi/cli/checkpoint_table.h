// A checkpoint for people: what `scaletrain checkpoint inspect` prints.
#pragma once

#include <string>

#include "options.h"

namespace cli {

/// `manifest`: st_checkpoint_inspect's.
void print_checkpoint(const Json& manifest);

}  // namespace cli

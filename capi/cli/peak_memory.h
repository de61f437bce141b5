// A context's peak memory as one line of text.
#pragma once

#include <string>

#include "handle.h"

namespace cli {

/// "35.1 MiB at its peak: parameters 3.0 MiB, ...": the total, then each role. Throws Failure.
std::string peak_memory(st_context* context);

}  // namespace cli

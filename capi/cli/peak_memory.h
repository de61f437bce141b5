// What a context's buffers took at most, as a line says it.
#pragma once

#include <string>

#include "handle.h"

namespace cli {

/// "35.1 MiB at its peak: parameters 3.0 MiB, ...": all together, then each role by itself. Throws Failure.
std::string peak_memory(st_context* context);

}  // namespace cli

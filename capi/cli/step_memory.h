// Memory of a GPT's training step as its context grows: planned, and the process's peak.
#pragma once

#include <cstdint>

namespace cli {

/// One step at each of the contexts 512 to 4096, batch 1. Prints one line each, or one JSON object.
void measure_step_memory(int64_t threads, bool json);

}  // namespace cli

// What a GPT's training step takes of memory as its context grows: what was planned, and what the process had at its peak.
#pragma once

#include <cstdint>

namespace cli {

/// One step at each of the contexts 512 to 4096, batch 1. Prints a line each, or one JSON object.
void measure_step_memory(int64_t threads, bool json);

}  // namespace cli

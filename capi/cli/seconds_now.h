// The clock of all measurements.
#pragma once

#include <chrono>

namespace cli {

/// Monotonic.
inline double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace cli

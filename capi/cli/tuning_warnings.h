// What the library says about a tuning cache that it cannot use: a line each on the error stream, and the command goes on.
#pragma once

#include <scaletrain/scaletrain.h>

#include <cstdio>
#include <string_view>

namespace cli {

/// An st_log_fn. What else is logged stands in the command's own output.
inline void warn_of_tuning(void*, int32_t level, const char* area, const char* text) {
  if (level <= ST_LOG_WARNING && std::string_view(area) == "tuning") std::fprintf(stderr, "scaletrain: tuning: %s\n", text);
}

}  // namespace cli

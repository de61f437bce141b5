// Prints the library's warnings about an unusable tuning cache on stderr, one line each; the command continues.
#pragma once

#include <scaletrain/scaletrain.h>

#include <cstdio>
#include <string_view>

namespace cli {

/// An st_log_fn. Ignores other log lines: the command's output has that information.
inline void warn_of_tuning(void*, int32_t level, const char* area, const char* text) {
  if (level <= ST_LOG_WARNING && std::string_view(area) == "tuning") std::fprintf(stderr, "scaletrain: tuning: %s\n", text);
}

}  // namespace cli

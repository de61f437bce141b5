#include "peak_memory.h"

#include "progress.h"

namespace cli {

std::string peak_memory(st_context* context) {
  st_memory_stats stats;
  ask(st_memory_stats_init(&stats, sizeof stats));
  ask(st_context_memory(context, &stats));
  std::string line = bytes_text(static_cast<double>(stats.peak_bytes)) + " at its peak";
  const char* between = ": ";
  for (int32_t role = 0; role < ST_MEMORY_ROLES; ++role) {
    if (stats.role_peak_bytes[role] == 0) continue;
    line += between + std::string(text(st_memory_role_name, role)) + " " + bytes_text(static_cast<double>(stats.role_peak_bytes[role]));
    between = ", ";
  }
  return line;
}

}  // namespace cli

// Where messages go: to a function of the host, or nowhere. The runtime itself writes to no stream.
#pragma once

#include <cstdint>

#include "base/float_mode.h"
#include "base/text.h"

namespace st {

enum class LogLevel : int32_t { error = 0, warning = 1, info = 2, debug = 3 };  // st_log_level in the C ABI

/// Copied freely; `user` belongs to the host and must outlive every copy. `write` is called once per record, from any thread, with text
/// that does not end in a newline. A null `write` is silent, and the parts are then not even joined.
struct Logger {
  void (*write)(void* user, int32_t level, const char* area, const char* text) = nullptr;
  void* user = nullptr;
  LogLevel level = LogLevel::info;  // records above it are dropped

  bool wants(LogLevel wanted) const { return write && static_cast<int32_t>(wanted) <= static_cast<int32_t>(level); }

  template <class... Parts>
  void error(const char* area, const Parts&... parts) const {
    record(LogLevel::error, area, parts...);
  }
  template <class... Parts>
  void warning(const char* area, const Parts&... parts) const {
    record(LogLevel::warning, area, parts...);
  }
  template <class... Parts>
  void info(const char* area, const Parts&... parts) const {
    record(LogLevel::info, area, parts...);
  }
  template <class... Parts>
  void debug(const char* area, const Parts&... parts) const {
    record(LogLevel::debug, area, parts...);
  }

 private:
  template <class... Parts>
  void record(LogLevel at, const char* area, const Parts&... parts) const {
    if (wants(at)) call_host(write, user, static_cast<int32_t>(at), area, text(parts...).c_str());
  }
};

}  // namespace st

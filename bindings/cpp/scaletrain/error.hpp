// Errors as exceptions, and the library itself. C++17.
#pragma once

#include <scaletrain/error.h>
#include <scaletrain/library.h>

#include <cstdint>
#include <scaletrain/leftover.hpp>
#include <stdexcept>
#include <string>

namespace scaletrain {

/// The statuses of C's error.h.
enum class Status : int32_t {
  ok = 0,
  invalid_argument = 1,
  invalid_handle = 2,
  wrong_state = 3,
  not_found = 4,
  out_of_memory = 5,
  unavailable = 6,
  unsupported = 7,
  cancelled = 8,
  busy = 9,
  timeout = 10,
  rank_failed = 11,
  rank_mismatch = 12,
  corrupt = 13,
  io = 14,
  not_finite = 15,
  callback = 16,
  internal = 17
};

/// Details of an error. Texts are empty and numbers -1 where unknown.
struct ErrorInfo {
  std::string op, tensor, file, host, collective;
  int64_t offset = -1;
  int64_t step = -1;
  int32_t rank = -1;
};

/// A failed call. what() has the operation, its values and the way out.
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message, ErrorInfo info) : std::runtime_error(message), status_(status), info_(std::move(info)) {}
  Error(Status status, const std::string& message) : Error(status, message, ErrorInfo()) {}

  Status status() const noexcept { return status_; }
  const ErrorInfo& info() const noexcept { return info_; }

 private:
  Status status_;
  ErrorInfo info_;
};

/// This thread's last error.
inline Error last_error(Status status) {
  const std::string message = st_last_error();  // read first: the next call may replace it
  const auto text = [](const char* known) { return std::string(known != nullptr ? known : ""); };
  ErrorInfo info;
  st_error_info raw;
  if (st_error_info_init(&raw, sizeof raw) == ST_OK && st_last_error_info(&raw) == ST_OK) {
    info = {text(raw.op), text(raw.tensor), text(raw.file), text(raw.host), text(raw.collective), raw.offset, raw.step, raw.rank};
  }
  return Error(status, message, info);
}

/// Throws this thread's last error. For direct calls of the C ABI.
inline void check(st_status status) {
  if (status != ST_OK) throw last_error(static_cast<Status>(status));
}

/// Throws Status::unsupported if the library found at run time cannot serve a program built for major.minor.
inline void require(int32_t major, int32_t minor) { check(st_require(major, minor)); }
/// The same for the headers of this build.
inline void require() { require(ST_VERSION_MAJOR, ST_VERSION_MINOR); }

inline std::string version() {
  const char* text = "";
  check(st_version(&text));
  return text;
}

/// JSON: version, devices, transports between ranks (each with the reason if it is missing), instruction sets, cores, memory, ops.
inline std::string features() {
  const char* json = "";
  check(st_features(&json));
  return json;
}

/// Counts handles that are not destroyed.
inline int64_t live_handles() {
  int64_t count = 0;
  detail::Leftover::end();
  check(st_live_handles(nullptr, &count));
  return count;
}
/// The same for one kind: "context", "graph", "model", "data", "recipe", "trainer", "predictor", "tensor", and so on.
inline int64_t live_handles(const std::string& kind) {
  int64_t count = 0;
  detail::Leftover::end();
  check(st_live_handles(kind.c_str(), &count));
  return count;
}

}  // namespace scaletrain

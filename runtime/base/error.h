// Errors: one class, thrown for a caller's mistake or a failure of the environment. Broken invariants of ours are asserts.
// A message names the operation, the values and the way out: check(rows > 0, "gather: rows must be positive, got ", rows).
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace st {

/// The statuses of the C ABI; values are pinned (st_status in scaletrain/error.h has the same literals).
enum class Code : int32_t {
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
  internal = 17,
};

/// Where an error happened, as data. Empty text and -1 mean unknown.
struct ErrorPlace {
  std::string op, tensor, file, host, collective;
  int64_t offset = -1, step = -1;
  int32_t rank = -1;
};

class Error : public std::exception {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  ~Error() override;

  Code code() const noexcept { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const noexcept { return message_; }

  ErrorPlace place;
  bool is_on_all_ranks = false;  // every rank throws it, so the group stays usable

 private:
  Code code_;
  std::string message_;
};

[[noreturn]] void fail(Code code, std::string message);

/// Throws invalid_argument with the joined parts when the caller's condition does not hold.
template <class... Parts>
void check(bool holds, const Parts&... parts) {
  if (!holds) fail(Code::invalid_argument, text(parts...));
}

/// The same with another code, for failures that are not a mistake in an argument.
template <class... Parts>
void require(bool holds, Code code, const Parts&... parts) {
  if (!holds) fail(code, text(parts...));
}

/// Runs call(); adds the tensor's name to the place of its errors.
template <class Call>
auto about_tensor(std::string_view name, const Call& call) {
  try {
    return call();
  } catch (Error& error) {
    if (error.place.tensor.empty()) error.place.tensor = name;
    throw;
  }
}

}  // namespace st

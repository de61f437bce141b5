// How a command fails: one line on stderr and an exit status.
#pragma once

#include <scaletrain/scaletrain.h>

#include <sstream>
#include <stdexcept>
#include <string>

namespace cli {

constexpr int kDone = 0;
constexpr int kRefused = 2;  // the request was wrong or cannot be met here
constexpr int kFailed = 3;   // it failed while running

struct Failure : std::runtime_error {
  Failure(int status, const std::string& message) : std::runtime_error(message), exit_status(status) {}
  int exit_status;
};

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  throw Failure(kRefused, out.str());
}

/// Checks a call made before the run starts: most errors there are the request's.
inline void ask(st_status status) {
  if (status == ST_OK) return;
  const bool is_defect = status == ST_INTERNAL || status == ST_INVALID_HANDLE || status == ST_WRONG_STATE || status == ST_BUSY;
  // Caused by other ranks: the same request may succeed next time.
  const bool is_of_others = status == ST_RANK_FAILED || status == ST_TIMEOUT || status == ST_CANCELLED;
  throw Failure(is_defect || is_of_others ? kFailed : kRefused, st_last_error());
}

/// Checks a call made while training: only errors in what the request named (an id outside the vocabulary, an inconsistent token file)
/// count as the request's.
inline void run(st_status status) {
  if (status == ST_OK) return;
  throw Failure(status == ST_INVALID_ARGUMENT || status == ST_CORRUPT ? kRefused : kFailed, st_last_error());
}

}  // namespace cli

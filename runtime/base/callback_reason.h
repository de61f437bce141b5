// Why a host's callback failed, in the host's words: kept per thread until the error is made.
#pragma once

#include <cstdint>
#include <string>

#include "base/float_mode.h"

namespace st {

/// Keeps at most kMostReason bytes; null: none.
void keep_callback_reason(const char* text) noexcept;
void forget_callback_reason() noexcept;
constexpr int kMostReason = 500;

/// For a message: `42`, or `42 ("the sensor is gone")` with the callback's reason, which is then forgotten.
std::string text_of_answer(int32_t status);

/// Calls a callback that returns a status. Forgets any reason that this thread gave before.
template <class... Parameters, class... Arguments>
int32_t ask_host(int32_t (*function)(Parameters...), Arguments... arguments) {
  forget_callback_reason();
  return call_host(function, arguments...);
}

}  // namespace st

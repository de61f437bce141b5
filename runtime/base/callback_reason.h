// Why a callback of the host's fails, in its own words: kept for its thread until the error that it becomes is made.
#pragma once

#include <cstdint>
#include <string>

#include "base/float_mode.h"

namespace st {

/// At most kMostReason bytes of it are kept; null: nothing.
void keep_callback_reason(const char* text) noexcept;
void forget_callback_reason() noexcept;
constexpr int kMostReason = 500;

/// For a message: `42`, or `42 ("the sensor is gone")` where the callback has said so, which is then forgotten.
std::string text_of_answer(int32_t status);

/// A callback that answers with a status. What was said before it, on this thread, is not its reason.
template <class... Parameters, class... Arguments>
int32_t ask_host(int32_t (*function)(Parameters...), Arguments... arguments) {
  forget_callback_reason();
  return call_host(function, arguments...);
}

}  // namespace st

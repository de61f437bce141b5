#include "base/callback_reason.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"

namespace st {
namespace {

// No destructor: one would keep the library from being unloaded while the thread lives.
constinit thread_local std::array<char, kMostReason + 1> why{};

}  // namespace

void keep_callback_reason(const char* text) noexcept {
  const size_t length = text == nullptr ? 0 : strnlen(text, kMostReason);
  std::copy_n(text == nullptr ? "" : text, length, why.data());
  why[length] = '\0';
}

void forget_callback_reason() noexcept { why[0] = '\0'; }

std::string text_of_answer(int32_t status) {
  std::string answer = why[0] == '\0' ? text(status) : text(status, " (\"", why.data(), "\")");
  forget_callback_reason();
  return answer;
}

}  // namespace st

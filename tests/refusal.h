// The message that a caller's mistake is answered with.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/error.h"
#include "thrown_error.h"

namespace st {

/// The message of what `act` throws, which has this code.
template <class Act>
std::string refusal(Code code, Act&& act) {
  const Error error = error_of(act);
  EXPECT_EQ(error.code(), code) << error.message();
  return error.message();
}

template <class Act>
std::string refusal(Act&& act) {
  return refusal(Code::invalid_argument, act);
}

/// Whether the message has all of these words.
inline testing::AssertionResult says(const std::string& message, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    if (message.find(word) == std::string::npos) return testing::AssertionFailure() << "no \"" << word << "\" in: " << message;
  return testing::AssertionSuccess();
}

inline testing::AssertionResult says(const Error& error, std::string_view word) { return says(error.message(), {word}); }

/// Whether `act` is refused with this code and these words.
template <class Act>
testing::AssertionResult refuses(Code code, std::initializer_list<std::string_view> words, Act&& act) {
  const Error error = error_of(act);
  if (error.code() != code) return testing::AssertionFailure() << "code " << static_cast<int>(error.code()) << ": " << error.message();
  return says(error.message(), words);
}

template <class Act>
testing::AssertionResult refuses(std::initializer_list<std::string_view> words, Act&& act) {
  return refuses(Code::invalid_argument, words, act);
}

}  // namespace st

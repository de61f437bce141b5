// The Error that a call throws, as a value to look at.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <vector>

#include "base/error.h"

namespace st {

/// Code::ok where the call returns.
template <class Call>
Error error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return {Code::ok, "nothing was thrown"};
}
/// The same for an exception that was caught on another thread.
inline Error error_of(const std::exception_ptr& caught) {
  return error_of([&] {
    if (caught) std::rethrow_exception(caught);
  });
}

/// Whether the error has this code and its message contains each of the words.
inline testing::AssertionResult is_error(const Error& error, Code code, const std::vector<std::string>& words = {}) {
  if (error.code() != code) return testing::AssertionFailure() << "code " << static_cast<int>(error.code()) << ": " << error.message();
  for (const std::string& word : words)
    if (error.message().find(word) == std::string::npos)
      return testing::AssertionFailure() << '"' << word << "\" is not in: " << error.message();
  return testing::AssertionSuccess() << error.message();
}

}  // namespace st

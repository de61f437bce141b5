// Says what a caller's mistake is answered with: the message of the st::Error that `act` throws.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace st {

template <class Act>
std::string refusal(Code code, Act&& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    return error.message();
  }
  return "(nothing was refused)";
}

template <class Act>
std::string refusal(Act&& act) {
  return refusal(Code::invalid_argument, act);
}

}  // namespace st

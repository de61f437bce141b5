// Durations in messages.
#pragma once

#include <cmath>
#include <string>

#include "base/text.h"

namespace st {

/// "0.00126 ms", "250 ms", "1.2 s": three digits, for people.
inline std::string text_of_seconds(double seconds) {
  const bool is_long = seconds >= 1;
  const double value = is_long ? seconds : seconds * 1e3;
  const double unit = value > 0 ? std::pow(10.0, std::floor(std::log10(value)) - 2) : 1;
  return text(std::round(value / unit) * unit, is_long ? " s" : " ms");
}

}  // namespace st

// The domain of a number as tables state it: "[0,1)", "(0,inf)".
#pragma once

#include <string>
#include <string_view>

namespace st {

/// False for NaN. `interval`: two numbers or -inf, inf, in brackets; a round one leaves its bound out.
bool is_inside(double value, std::string_view interval);

/// "[0, 1)", as errors have it. Of whole numbers inf is 2^63, their type's.
std::string interval_text(std::string_view interval, bool whole = false);

}  // namespace st

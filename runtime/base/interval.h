// Ranges of numbers as tables write them: "[0,1)", "(0,inf)".
#pragma once

#include <string>
#include <string_view>

namespace st {

/// False for NaN. `interval`: two numbers, -inf or inf in brackets; a round bracket excludes its bound.
bool is_inside(double value, std::string_view interval);

/// "[0, 1)", for error messages. With `whole`, inf is written as 2^63, the limit of the type.
std::string interval_text(std::string_view interval, bool whole = false);

}  // namespace st

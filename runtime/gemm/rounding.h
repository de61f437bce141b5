// Whole numbers of tiles, panels and tasks. Arguments are not negative, b is positive.
#pragma once

#include <cstdint>

namespace st {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace st

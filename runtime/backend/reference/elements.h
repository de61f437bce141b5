// Reads and writes one element of an operand as a double or an int64, whatever its type.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "backend/kernel_side.h"
#include "base/float16.h"
#include "base/narrowing.h"

namespace st::reference {

/// A 64-bit integer that double cannot hold exactly keeps its upper 52 bits, rounded to odd for the reason of narrowing.h.
inline double odd_double_of(int64_t value) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (value >= -kExact && value <= kExact) return static_cast<double>(value);
  const bool inexact = (value & 0xFFF) != 0;
  const int64_t upper = (value >> 12) | (inexact ? 1 : 0);
  return static_cast<double>(upper) * 4096.0;
}

// Out of line on purpose: when inlined, the compiler copied every loop for every type of every operand.
double get(const Operand& x, int64_t i);
int64_t get_integer(const Operand& x, int64_t i);              // for an integer or boolean operand
void set_integer(const Operand& y, int64_t i, int64_t value);  // integers wrap around
void set(const Operand& y, int64_t i, double value);           // rounds once, to nearest even; truncates for an integer

/// Integers and booleans are computed in int64, since double cannot represent all of them.
inline bool is_whole(DType dtype) { return !is_floating(dtype); }

}  // namespace st::reference

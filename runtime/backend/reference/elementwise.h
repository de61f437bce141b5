// Loops of the elementwise ops.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/strides.h"

namespace st::reference {

inline bool is_nan(double x) { return std::isnan(x); }
inline bool is_nan(int64_t) { return false; }

/// formula(a, b); integers wrap around.
template <class T, class Formula>
T wrapping(T a, T b, Formula formula) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(formula(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  } else {
    return formula(a, b);
  }
}

/// out = formula(in0), all as double.
template <class Formula>
void map(const Call& call, Formula formula) {
  const Operand &x = call.in[0], &y = call.out[0];
  const int64_t n = y.elements();
  for (int64_t i = 0; i < n; ++i) set(y, i, formula(get(x, i)));
}

/// out = formula(in0, in1) as double, both broadcast to out's shape.
template <class Formula>
void map2(const Call& call, Formula formula) {
  const Operand &a = call.in[0], &b = call.in[1], &c = call.out[0];
  const Strides from_a = stretched(a.shape, c.shape), from_b = stretched(b.shape, c.shape);
  const int64_t n = c.elements();
  for (int64_t i = 0; i < n; ++i) {
    set(c, i, formula(get(a, place(i, c.shape, from_a)), get(b, place(i, c.shape, from_b))));
  }
}

/// The same for ops that also take integers: `formula` is generic; called with int64 for integers, with double otherwise.
template <class Formula>
void any_map2(const Call& call, Formula formula) {
  const Operand &a = call.in[0], &b = call.in[1], &c = call.out[0];
  if (!is_whole(a.dtype)) return map2(call, formula);
  const Strides from_a = stretched(a.shape, c.shape), from_b = stretched(b.shape, c.shape);
  const int64_t n = c.elements();
  for (int64_t i = 0; i < n; ++i) {
    set_integer(c, i, formula(get_integer(a, place(i, c.shape, from_a)), get_integer(b, place(i, c.shape, from_b))));
  }
}

}  // namespace st::reference

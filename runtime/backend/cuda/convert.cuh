// y = x in another dtype, where one of the two is an integer, bool or fp64: the cpu's bits (cpu/cast.cpp, cpu/convert.h). Types are
// arguments: a thread reads kEach elements as doubles if x floats, else as 64-bit integers, and rounds them once.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/vectors.cuh"
#include "base/dtype.h"

namespace st::cuda {

struct Truth {
  uint8_t byte;
};

// --- to one of the two types

/// A NaN keeps its sign and upper payload.
DEVICE double wide_of(float x) {
  const uint32_t bits = bits_of(x);
  if (!is_nan(bits)) return static_cast<double>(x);
  return std::bit_cast<double>(uint64_t{bits & 0x80000000} << 32 | uint64_t{0x7FF8} << 48 | uint64_t{bits & 0x3FFFFF} << 29);
}
DEVICE double wide_of(double x) { return flushed(x); }
DEVICE double wide_of(Bf16 x) { return wide_of(widen(x)); }
DEVICE double wide_of(F16 x) { return wide_of(widen(x)); }

DEVICE int64_t wide_of(int32_t x) { return x; }
DEVICE int64_t wide_of(int64_t x) { return x; }
DEVICE int64_t wide_of(uint8_t x) { return x; }
DEVICE int64_t wide_of(Truth x) { return x.byte != 0 ? 1 : 0; }

// --- from it

/// As the cpu rounds to fp32: numbers that are below the normal range after rounding are zeros.
DEVICE float single_of(double x) {
  if (x != x) {
    const auto bits = std::bit_cast<uint64_t>(x);
    return float_of_bits(static_cast<uint32_t>(bits >> 32 & 0x80000000) | 0x7FC00000 | static_cast<uint32_t>(bits >> 29 & 0x3FFFFF));
  }
  if (fabs(x) >= 0x1p-126) return static_cast<float>(x);
  const uint32_t sign = static_cast<uint32_t>(std::bit_cast<uint64_t>(x) >> 32) & 0x80000000;
  return float_of_bits(sign | (fabs(x) < 0x1p-126 - 0x1p-151 ? 0 : 0x800000));
}
DEVICE float single_of(int64_t x) { return static_cast<float>(x); }

/// Rounded to odd, so that rounding it to 16 bits equals rounding x once.
DEVICE float odd_single_of(double x) {
  const float nearest = single_of(x);
  const uint32_t bits = bits_of(nearest);
  if (x != x || static_cast<double>(nearest) == x || (bits & 1) != 0) return nearest;
  const bool is_away = (static_cast<double>(nearest) > x) == (x > 0);
  return float_of_bits(is_away ? bits - 1 : bits + 1);
}

/// The integer part, clamped to T's range; 0 for NaN.
template <class T>
DEVICE T integer_of(double x) {
  constexpr T kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  if (x != x) return 0;
  if (x <= static_cast<double>(kLow)) return kLow;
  return x >= static_cast<double>(kHigh) ? kHigh : static_cast<T>(x);
}
/// Wraps around.
template <class T>
DEVICE T integer_of(int64_t x) {
  return static_cast<T>(x);
}

template <class T, class C>
DEVICE T converted(C x) {
  if constexpr (std::is_same_v<T, float>) {
    return single_of(x);
  } else if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(x);
  } else if constexpr (std::is_same_v<T, Truth>) {
    return {static_cast<uint8_t>(x != 0 ? 1 : 0)};
  } else if constexpr (std::is_integral_v<T>) {
    return integer_of<T>(x);
  } else {
    T pair[2];
    narrow_pair(pair, odd_single_of(static_cast<double>(x)), 0.0F);
    return pair[0];
  }
}

// --- elements

constexpr int kConvertVector = 4;  // elements of a thread

/// `count`: those that there are, from `at` on, a multiple of kConvertVector.
template <class T, class C>
DEVICE void read_wide(C (&to)[kConvertVector], const void* from, int64_t at, int64_t count) {
  const T* const x = static_cast<const T*>(from) + at;
  if (count >= kConvertVector) {
    const auto read = load_vector<Vector<T, kConvertVector>>(x);
    for (int i = 0; i < kConvertVector; ++i) to[i] = wide_of(read.at[i]);
    return;
  }
  UNROLL
  for (int i = 0; i < kConvertVector; ++i)
    if (i < count) to[i] = wide_of(x[i]);
}

template <class T, class C>
DEVICE void write_converted(void* to, const C (&from)[kConvertVector], int64_t at, int64_t count) {
  T* const y = static_cast<T*>(to) + at;
  if (count >= kConvertVector) {
    Vector<T, kConvertVector> made;
    for (int i = 0; i < kConvertVector; ++i) made.at[i] = converted<T>(from[i]);
    return store_vector(y, made);
  }
  UNROLL
  for (int i = 0; i < kConvertVector; ++i)
    if (i < count) y[i] = converted<T>(from[i]);
}

/// C: double if x floats, else int64_t.
template <class C>
DEVICE void read_type(C (&to)[kConvertVector], DType type, const void* x, int64_t at, int64_t count) {
  if constexpr (std::is_same_v<C, double>) {
    if (type == DType::f32) return read_wide<float>(to, x, at, count);
    if (type == DType::bf16) return read_wide<Bf16>(to, x, at, count);
    if (type == DType::f16) return read_wide<F16>(to, x, at, count);
    read_wide<double>(to, x, at, count);
  } else {
    if (type == DType::i32) return read_wide<int32_t>(to, x, at, count);
    if (type == DType::u8) return read_wide<uint8_t>(to, x, at, count);
    if (type == DType::boolean) return read_wide<Truth>(to, x, at, count);
    read_wide<int64_t>(to, x, at, count);
  }
}

template <class C>
KERNEL(kBlock)
convert_elements(DType to, void* y, DType from, const void* x, int64_t elements) {
  const int64_t at = (int64_t{block_index()} * kBlock + thread_index()) * kConvertVector, count = elements - at;
  if (count <= 0) return;
  C wide[kConvertVector] = {};
  read_type(wide, from, x, at, count);
  switch (to) {
    case DType::f32:
      return write_converted<float>(y, wide, at, count);
    case DType::f64:
      return write_converted<double>(y, wide, at, count);
    case DType::bf16:
      return write_converted<Bf16>(y, wide, at, count);
    case DType::f16:
      return write_converted<F16>(y, wide, at, count);
    case DType::i32:
      return write_converted<int32_t>(y, wide, at, count);
    case DType::i64:
      return write_converted<int64_t>(y, wide, at, count);
    case DType::u8:
      return write_converted<uint8_t>(y, wide, at, count);
    case DType::boolean:
      return write_converted<Truth>(y, wide, at, count);
  }
}

}  // namespace st::cuda

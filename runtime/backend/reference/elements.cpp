#include "backend/reference/elements.h"

namespace st::reference {

double get(const Operand& x, int64_t i) {
  switch (x.dtype) {
    case DType::f32:
      return static_cast<double>(as<const float>(x)[i]);
    case DType::f64:
      return as<const double>(x)[i];
    case DType::bf16:
      return static_cast<double>(f32_of_bf16(as<const uint16_t>(x)[i]));
    case DType::f16:
      return static_cast<double>(f32_of_f16(as<const uint16_t>(x)[i]));
    case DType::i32:
      return static_cast<double>(as<const int32_t>(x)[i]);
    case DType::i64:
      return odd_double_of(as<const int64_t>(x)[i]);
    case DType::u8:
      return static_cast<double>(as<const uint8_t>(x)[i]);
    case DType::boolean:
      return as<const uint8_t>(x)[i] != 0 ? 1 : 0;
  }
  return 0;
}

/// For an integer or boolean operand.
int64_t get_integer(const Operand& x, int64_t i) {
  switch (x.dtype) {
    case DType::i32:
      return as<const int32_t>(x)[i];
    case DType::i64:
      return as<const int64_t>(x)[i];
    case DType::u8:
      return as<const uint8_t>(x)[i];
    case DType::boolean:
      return as<const uint8_t>(x)[i] != 0 ? 1 : 0;
    default:
      return static_cast<int64_t>(get(x, i));
  }
}

/// Integers wrap around.
void set_integer(const Operand& y, int64_t i, int64_t value) {
  switch (y.dtype) {
    case DType::i32:
      as<int32_t>(y)[i] = static_cast<int32_t>(value);
      return;
    case DType::i64:
      as<int64_t>(y)[i] = value;
      return;
    case DType::u8:
      as<uint8_t>(y)[i] = static_cast<uint8_t>(value);
      return;
    case DType::boolean:
      as<uint8_t>(y)[i] = value != 0;
      return;
    default:
      return;
  }
}

/// The integer part of `value`, clamped to [low, high]; 0 for NaN. (A plain conversion is undefined outside the range.)
int64_t truncate(double value, int64_t low, int64_t high) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(low)) return low;
  if (value >= static_cast<double>(high)) return high;
  return static_cast<int64_t>(value);
}

/// Rounds once, to nearest even; truncates for an integer.
void set(const Operand& y, int64_t i, double value) {
  switch (y.dtype) {
    case DType::f32:
      as<float>(y)[i] = static_cast<float>(value);
      return;
    case DType::f64:
      as<double>(y)[i] = value;
      return;
    case DType::bf16:
      as<uint16_t>(y)[i] = bf16_of(odd_float_of(value));
      return;
    case DType::f16:
      as<uint16_t>(y)[i] = f16_of(odd_float_of(value));
      return;
    case DType::i32:
      as<int32_t>(y)[i] = static_cast<int32_t>(truncate(value, INT32_MIN, INT32_MAX));
      return;
    case DType::i64:
      as<int64_t>(y)[i] = truncate(value, INT64_MIN, INT64_MAX);
      return;
    case DType::u8:
      as<uint8_t>(y)[i] = static_cast<uint8_t>(truncate(value, 0, UINT8_MAX));
      return;
    case DType::boolean:
      as<uint8_t>(y)[i] = value != 0;
      return;
  }
}

}  // namespace st::reference

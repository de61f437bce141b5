#include "backend/reference/elements.h"

namespace st::reference {

double get(const Operand& x, int64_t i) {
  switch (x.dtype) {
    case DType::f32:
      return static_cast<double>(x.as<const float>()[i]);
    case DType::f64:
      return x.as<const double>()[i];
    case DType::bf16:
      return static_cast<double>(f32_of_bf16(x.as<const uint16_t>()[i]));
    case DType::f16:
      return static_cast<double>(f32_of_f16(x.as<const uint16_t>()[i]));
    case DType::i32:
      return static_cast<double>(x.as<const int32_t>()[i]);
    case DType::i64:
      return odd_double_of(x.as<const int64_t>()[i]);
    case DType::u8:
      return static_cast<double>(x.as<const uint8_t>()[i]);
    case DType::boolean:
      return x.as<const uint8_t>()[i] != 0 ? 1 : 0;
  }
  return 0;
}

/// For an integer or boolean operand.
int64_t get_integer(const Operand& x, int64_t i) {
  switch (x.dtype) {
    case DType::i32:
      return x.as<const int32_t>()[i];
    case DType::i64:
      return x.as<const int64_t>()[i];
    case DType::u8:
      return x.as<const uint8_t>()[i];
    case DType::boolean:
      return x.as<const uint8_t>()[i] != 0 ? 1 : 0;
    default:
      return static_cast<int64_t>(get(x, i));
  }
}

/// Integers wrap around.
void set_integer(const Operand& y, int64_t i, int64_t value) {
  switch (y.dtype) {
    case DType::i32:
      y.as<int32_t>()[i] = static_cast<int32_t>(value);
      return;
    case DType::i64:
      y.as<int64_t>()[i] = value;
      return;
    case DType::u8:
      y.as<uint8_t>()[i] = static_cast<uint8_t>(value);
      return;
    case DType::boolean:
      y.as<uint8_t>()[i] = value != 0;
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
      y.as<float>()[i] = static_cast<float>(value);
      return;
    case DType::f64:
      y.as<double>()[i] = value;
      return;
    case DType::bf16:
      y.as<uint16_t>()[i] = bf16_of(odd_float_of(value));
      return;
    case DType::f16:
      y.as<uint16_t>()[i] = f16_of(odd_float_of(value));
      return;
    case DType::i32:
      y.as<int32_t>()[i] = static_cast<int32_t>(truncate(value, INT32_MIN, INT32_MAX));
      return;
    case DType::i64:
      y.as<int64_t>()[i] = truncate(value, INT64_MIN, INT64_MAX);
      return;
    case DType::u8:
      y.as<uint8_t>()[i] = static_cast<uint8_t>(truncate(value, 0, UINT8_MAX));
      return;
    case DType::boolean:
      y.as<uint8_t>()[i] = value != 0;
      return;
  }
}

}  // namespace st::reference

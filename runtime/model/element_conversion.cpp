#include "model/element_conversion.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/float16.h"

namespace st {
namespace {

template <class T>
T load(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

template <class T>
void store(std::byte* target, T value) {
  std::memcpy(target, &value, sizeof value);
}

float f32_at(DType dtype, const std::byte* source) {
  switch (dtype) {
    case DType::f32:
      return load<float>(source);
    case DType::f64:
      return static_cast<float>(load<double>(source));
    case DType::bf16:
      return f32_of_bf16(load<uint16_t>(source));
    case DType::f16:
      return f32_of_f16(load<uint16_t>(source));
    default:
      fail(Code::internal, text("convert_element: from ", dtype));
  }
}

}  // namespace

void convert_element(DType from, const std::byte* source, DType to, std::byte* target) {
  if (from == to) {
    std::memcpy(target, source, static_cast<size_t>(bytes_of(to)));
    return;
  }
  const float value = f32_at(from, source);
  switch (to) {
    case DType::f32:
      return store(target, value);
    case DType::f64:
      return store(target, static_cast<double>(value));
    case DType::bf16:
      return store(target, bf16_of(value));
    case DType::f16:
      return store(target, f16_of(value));
    default:
      fail(Code::internal, text("convert_element: to ", to));
  }
}

void convert_elements(DType from, const std::byte* source, DType to, std::byte* target, int64_t elements) {
  if (from == to) {  // a write and a read lose no bit of any dtype
    std::copy_n(source, elements * bytes_of(to), target);
    return;
  }
  const auto step = static_cast<size_t>(bytes_of(from)), width = static_cast<size_t>(bytes_of(to));
  for (int64_t i = 0; i < elements; ++i, source += step, target += width) convert_element(from, source, to, target);
}

}  // namespace st

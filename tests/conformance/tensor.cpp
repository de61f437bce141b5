#include "tensor.h"

#include <cstring>

#include "base/error.h"
#include "base/float16.h"

namespace st::conformance {
namespace {

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace

Tensor::Tensor(DType dtype, const Shape& shape)
    : dtype_(dtype), shape_(shape), bytes_(static_cast<size_t>(shape.elements() * bytes_of(dtype))) {}

Tensor Tensor::of(const Shape& shape, const std::vector<double>& values, DType dtype) {
  Tensor x(dtype, shape);
  check(x.elements() == static_cast<int64_t>(values.size()), "Tensor::of: ", values.size(), " values for shape ", shape);
  for (int64_t i = 0; i < x.elements(); ++i) x.set(i, values[static_cast<size_t>(i)]);
  return x;
}

double Tensor::at(int64_t i) const {
  const std::byte* from = bytes_.data() + i * bytes_of(dtype_);
  switch (dtype_) {
    case DType::f32:
      return static_cast<double>(read<float>(from));
    case DType::f64:
      return read<double>(from);
    case DType::bf16:
      return static_cast<double>(f32_of_bf16(read<uint16_t>(from)));
    case DType::f16:
      return static_cast<double>(f32_of_f16(read<uint16_t>(from)));
    case DType::i32:
      return read<int32_t>(from);
    case DType::i64:
      return static_cast<double>(read<int64_t>(from));
    case DType::u8:
      return read<uint8_t>(from);
    case DType::boolean:
      return read<uint8_t>(from) != 0 ? 1 : 0;
  }
  return 0;
}

void Tensor::set(int64_t i, double value) {
  std::byte* to = bytes_.data() + i * bytes_of(dtype_);
  switch (dtype_) {
    case DType::f32:
      return write(to, static_cast<float>(value));
    case DType::f64:
      return write(to, value);
    case DType::bf16:
      return write(to, bf16_of(static_cast<float>(value)));
    case DType::f16:
      return write(to, f16_of(static_cast<float>(value)));
    case DType::i32:
      return write(to, static_cast<int32_t>(value));
    case DType::i64:
      return write(to, static_cast<int64_t>(value));
    case DType::u8:
      return write(to, static_cast<uint8_t>(value));
    case DType::boolean:
      return write(to, static_cast<uint8_t>(value != 0 ? 1 : 0));
  }
}

Tensor Tensor::to(DType dtype) const {
  Tensor y(dtype, shape_);
  for (int64_t i = 0; i < elements(); ++i) y.set(i, at(i));
  return y;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  check(shape.elements() == elements(), "Tensor::reshaped: from ", shape_, " to ", shape);
  Tensor y = *this;
  y.shape_ = shape;
  return y;
}

double unit_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0x1p-23;
    case DType::f64:
      return 0x1p-52;
    case DType::bf16:
      return 0x1p-7;
    case DType::f16:
      return 0x1p-10;
    default:
      return 0;
  }
}

}  // namespace st::conformance

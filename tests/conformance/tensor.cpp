#include "tensor.h"

#include <cstring>
#include <utility>

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

/// Calls `then` with a function that reads an element of this type. Loops call this once: most of a case's time goes into them.
template <class Then>
auto with_reader(DType dtype, const Then& then) {
  switch (dtype) {
    case DType::f32:
      return then([](const std::byte* from) { return static_cast<double>(read<float>(from)); });
    case DType::f64:
      return then([](const std::byte* from) { return read<double>(from); });
    case DType::bf16:
      return then([](const std::byte* from) { return static_cast<double>(f32_of_bf16(read<uint16_t>(from))); });
    case DType::f16:
      return then([](const std::byte* from) { return static_cast<double>(f32_of_f16(read<uint16_t>(from))); });
    case DType::i32:
      return then([](const std::byte* from) { return static_cast<double>(read<int32_t>(from)); });
    case DType::i64:
      return then([](const std::byte* from) { return static_cast<double>(read<int64_t>(from)); });
    case DType::u8:
      return then([](const std::byte* from) { return static_cast<double>(read<uint8_t>(from)); });
    case DType::boolean:
      return then([](const std::byte* from) { return read<uint8_t>(from) != 0 ? 1.0 : 0.0; });
  }
  fail(Code::internal, text("Tensor: no type ", static_cast<int>(dtype)));
}

/// The same with a function that writes one.
template <class Then>
void with_writer(DType dtype, const Then& then) {
  switch (dtype) {
    case DType::f32:
      return then([](std::byte* to, double value) { write(to, static_cast<float>(value)); });
    case DType::f64:
      return then([](std::byte* to, double value) { write(to, value); });
    case DType::bf16:
      return then([](std::byte* to, double value) { write(to, bf16_of(static_cast<float>(value))); });
    case DType::f16:
      return then([](std::byte* to, double value) { write(to, f16_of(static_cast<float>(value))); });
    case DType::i32:
      return then([](std::byte* to, double value) { write(to, static_cast<int32_t>(value)); });
    case DType::i64:
      return then([](std::byte* to, double value) { write(to, static_cast<int64_t>(value)); });
    case DType::u8:
      return then([](std::byte* to, double value) { write(to, static_cast<uint8_t>(value)); });
    case DType::boolean:
      return then([](std::byte* to, double value) { write(to, static_cast<uint8_t>(value != 0 ? 1 : 0)); });
  }
}

}  // namespace

Tensor::Tensor(DType dtype, const Shape& shape)
    : dtype_(dtype), shape_(shape), bytes_(static_cast<size_t>(shape.elements() * bytes_of(dtype))) {}

Tensor Tensor::of(const Shape& shape, const std::vector<double>& values, DType dtype) {
  Tensor x(dtype, shape);
  check(x.elements() == static_cast<int64_t>(values.size()), "Tensor::of: ", values.size(), " values for shape ", shape);
  const int64_t width = bytes_of(dtype);
  with_writer(dtype, [&](const auto& write_to) {
    std::byte* to = x.bytes_.data();
    for (const double value : values) {
      write_to(to, value);
      to += width;
    }
  });
  return x;
}

double Tensor::at(int64_t i) const {
  return with_reader(dtype_, [&](const auto& read_from) { return read_from(bytes_.data() + i * bytes_of(dtype_)); });
}

std::vector<double> Tensor::values() const {
  std::vector<double> all(static_cast<size_t>(elements()));
  const int64_t width = bytes_of(dtype_);
  return with_reader(dtype_, [&](const auto& read_from) {
    const std::byte* from = bytes_.data();
    for (double& value : all) {
      value = read_from(from);
      from += width;
    }
    return std::move(all);
  });
}

void Tensor::set(int64_t i, double value) {
  with_writer(dtype_, [&](const auto& write_to) { write_to(bytes_.data() + i * bytes_of(dtype_), value); });
}

Tensor Tensor::to(DType dtype) const { return of(shape_, values(), dtype); }

bool Tensor::operator==(const Tensor& other) const {
  return dtype_ == other.dtype_ && shape_ == other.shape_ && bytes_.size() == other.bytes_.size() &&
         (bytes_.empty() || std::memcmp(bytes_.data(), other.bytes_.data(), bytes_.size()) == 0);
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

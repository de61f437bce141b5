// Runs one op of the reference backend on arrays in the test's own memory.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace st {

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};

struct Array {
  Type type;
  std::vector<double> memory;  // as bytes; double for its alignment

  Array() = default;
  Array(DType dtype, const Shape& shape);  // zeros
  template <class T>
  static Array of(const Shape& shape, const std::vector<T>& values) {
    Array array(DTypeOf<T>::value, shape);
    for (size_t i = 0; i < values.size(); ++i) array.as<T>()[i] = values[i];
    return array;
  }

  const Shape& shape() const { return type.shape; }
  int64_t elements() const { return type.shape.elements(); }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(memory.data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(memory.data());
  }
  template <class T>
  std::vector<T> values() const {
    return {as<T>(), as<T>() + elements()};
  }
};

/// f64 values between -1 and 1 that look random and are the same in every run.
Array wave(const Shape& shape, double seed);

/// Outputs of `op`; `slots` are read and written in place.
std::vector<Array> run(Op op, const std::vector<Array>& in, const Attrs& attrs = {}, const std::vector<Array*>& slots = {});

/// What the Error thrown by run() says; a test failure when nothing is thrown.
std::string error_of(Op op, const std::vector<Array>& in, const Attrs& attrs = {});

}  // namespace st

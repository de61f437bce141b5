// What a reduction is to give, by the shortest loops: communicator.h says the order, base/float16.h how halves are rounded.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "base/dtype.h"
#include "base/float16.h"
#include "base/float_mode.h"
#include "comm/collective.h"

namespace st {

using Bytes = std::vector<std::byte>;

template <class T>
T element(const Bytes& bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void set_element(Bytes& bytes, int64_t i, T value) {
  std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
}

/// Values of all magnitudes whose sums depend on their order; bit patterns for integers.
inline Bytes drawn(DType dtype, int64_t elements, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(static_cast<size_t>(elements * bytes_of(dtype)));
  for (int64_t i = 0; i < elements; ++i) {
    const double value = std::ldexp(std::uniform_real_distribution<>(-1, 1)(random), static_cast<int>(random() % 12) - 6);
    switch (dtype) {
      case DType::f32:
        set_element(bytes, i, static_cast<float>(value));
        break;
      case DType::f64:
        set_element(bytes, i, value);
        break;
      case DType::bf16:
        set_element(bytes, i, bf16_of(static_cast<float>(value)));
        break;
      case DType::f16:
        set_element(bytes, i, f16_of(static_cast<float>(value)));
        break;
      case DType::i32:
        set_element(bytes, i, static_cast<int32_t>(random()));
        break;
      case DType::i64:
        set_element(bytes, i, static_cast<int64_t>((uint64_t{random()} << 32) | random()));
        break;
      default:
        set_element(bytes, i, static_cast<uint8_t>(random()));
    }
  }
  return bytes;
}

template <class Sum>
Sum applied(ReduceOp op, Sum a, Sum b) {
  if (op == ReduceOp::max) return a != a || b != b ? std::numeric_limits<Sum>::quiet_NaN() : a > b ? a : b;
  if (op == ReduceOp::min) return a != a || b != b ? std::numeric_limits<Sum>::quiet_NaN() : a < b ? a : b;
  return a + b;
}

/// Of all ranks' data, rank 0's first, rounded once.
inline Bytes plainly_reduced(DType dtype, ReduceOp op, const std::vector<Bytes>& ranks) {
  const FloatMode mode;
  const auto count = static_cast<int64_t>(ranks[0].size()) / bytes_of(dtype);
  Bytes out(ranks[0].size());
  const auto reduce = [&](auto zero, const auto& load, const auto& store) {
    for (int64_t i = 0; i < count; ++i) {
      decltype(zero) sum = load(ranks[0], i);
      for (size_t r = 1; r < ranks.size(); ++r) sum = applied(op, sum, load(ranks[r], i));
      if (op == ReduceOp::mean) sum = sum / static_cast<decltype(zero)>(ranks.size());
      store(i, sum);
    }
  };
  // Integers wrap around, which C++ says of unsigned ones alone; max and min are of signed ones.
  const auto integers = [&]<class T>(T) {
    using Unsigned = std::make_unsigned_t<T>;
    for (int64_t i = 0; i < count; ++i) {
      T sum = element<T>(ranks[0], i);
      for (size_t r = 1; r < ranks.size(); ++r) {
        const T next = element<T>(ranks[r], i);
        sum = op == ReduceOp::sum   ? static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(sum) + static_cast<Unsigned>(next)))
              : op == ReduceOp::max ? std::max(sum, next)
                                    : std::min(sum, next);
      }
      set_element(out, i, sum);
    }
  };
  switch (dtype) {
    case DType::f32:
      reduce(0.0F, element<float>, [&](int64_t i, float sum) { set_element(out, i, sum); });
      break;
    case DType::f64:
      reduce(0.0, element<double>, [&](int64_t i, double sum) { set_element(out, i, sum); });
      break;
    case DType::bf16:
      reduce(
          0.0F, [](const Bytes& from, int64_t i) { return f32_of_bf16(element<uint16_t>(from, i)); },
          [&](int64_t i, float sum) { set_element(out, i, bf16_of(sum)); });
      break;
    case DType::f16:
      reduce(
          0.0F, [](const Bytes& from, int64_t i) { return f32_of_f16(element<uint16_t>(from, i)); },
          [&](int64_t i, float sum) { set_element(out, i, f16_of(sum)); });
      break;
    case DType::i32:
      integers(int32_t{});
      break;
    case DType::i64:
      integers(int64_t{});
      break;
    default:
      integers(uint8_t{});
  }
  return out;
}

}  // namespace st

// The expected results of reductions, by the shortest loops. communicator.h defines the order, base/float16.h the rounding.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/dtype.h"
#include "base/float16.h"
#include "base/float_mode.h"
#include "base/philox.h"
#include "comm/collective.h"

namespace st {

/// Compared at once: std::equal takes bytes one by one, which a sanitizer makes the most of these tests' time.
class Bytes : public std::vector<std::byte> {
 public:
  using std::vector<std::byte>::vector;
  friend bool operator==(const Bytes& a, const Bytes& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }
};

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

/// Calls visit(zero, load, store): a zero of the type in which elements of this dtype are summed, and how they are read and written.
template <class Visit>
void with_elements(DType dtype, const Visit& visit) {
  const auto plain = [&](auto zero) { visit(zero, element<decltype(zero)>, set_element<decltype(zero)>); };
  const auto half = [&](auto widen, auto round) {
    visit(
        0.0F, [=](const Bytes& from, int64_t i) { return widen(element<uint16_t>(from, i)); },
        [=](Bytes& to, int64_t i, float value) { set_element(to, i, round(value)); });
  };
  switch (dtype) {
    case DType::f32:
      return plain(0.0F);
    case DType::f64:
      return plain(0.0);
    case DType::bf16:
      return half([](uint16_t bits) { return f32_of_bf16(bits); }, [](float value) { return bf16_of(value); });
    case DType::f16:
      return half([](uint16_t bits) { return f32_of_f16(bits); }, [](float value) { return f16_of(value); });
    case DType::i32:
      return plain(int32_t{});
    case DType::i64:
      return plain(int64_t{});
    default:
      return plain(uint8_t{});
  }
}

/// Values of all magnitudes whose sums depend on their order; bit patterns for integers.
inline Bytes drawn(DType dtype, int64_t elements, uint32_t seed) {
  uint64_t state = mix(seed, 1);  // standard generators take most of a test's time where a sanitizer looks at them
  const auto random = [&] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<uint32_t>(state >> 32);
  };
  Bytes bytes(static_cast<size_t>(elements * bytes_of(dtype)));
  with_elements(dtype, [&](auto zero, const auto&, const auto& store) {
    using T = decltype(zero);
    for (int64_t i = 0; i < elements; ++i) {
      if constexpr (std::is_floating_point_v<T>)
        store(bytes, i, static_cast<T>(std::ldexp(random() * 0x1p-31 - 1, static_cast<int>(random() % 12) - 6)));
      else
        store(bytes, i, static_cast<T>((uint64_t{random()} << 32) | random()));
    }
  });
  return bytes;
}

/// Integer sums wrap around, so they are computed unsigned; max and min compare signed.
template <class T>
T applied(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    if (op == ReduceOp::sum) return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    if (op == ReduceOp::sum || op == ReduceOp::mean) return a + b;
    if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
  }
  return op == ReduceOp::max ? (a > b ? a : b) : (a < b ? a : b);
}

/// Reduces all ranks' data, rank 0's first, rounding once.
inline Bytes plainly_reduced(DType dtype, ReduceOp op, const std::vector<Bytes>& ranks) {
  const FloatMode mode;
  const auto count = static_cast<int64_t>(ranks[0].size()) / bytes_of(dtype);
  Bytes out(ranks[0].size());
  with_elements(dtype, [&](auto zero, const auto& load, const auto& store) {
    using T = decltype(zero);
    for (int64_t i = 0; i < count; ++i) {
      T sum = load(ranks[0], i);
      for (size_t r = 1; r < ranks.size(); ++r) sum = applied<T>(op, sum, load(ranks[r], i));
      if (op == ReduceOp::mean) sum = static_cast<T>(sum / static_cast<T>(ranks.size()));
      store(out, i, sum);
    }
  });
  return out;
}

}  // namespace st

#include "base/combine.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/f16_rows.h"
#include "base/half_lanes.h"
#include "base/vector_copy.h"

namespace st {
namespace {

constexpr int64_t kBlock = 512;  // elements widened at a time: they fit the L1 cache

template <class T>
T load(const std::byte* from, int64_t i) {
  T value;
  std::memcpy(&value, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* to, int64_t i, T value) {
  std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

template <class From, class To, class Convert>
void convert(const std::byte* __restrict from, std::byte* __restrict to, int64_t n, const Convert& one) {
  for (int64_t i = 0; i < n; ++i) store<To>(to, i, one(load<From>(from, i)));
}

template <class T, class One>
void each(const std::byte* __restrict piece, std::byte* __restrict sums, int64_t n, const One& one) {
  for (int64_t i = 0; i < n; ++i) store<T>(sums, i, one(load<T>(sums, i), load<T>(piece, i)));
}

/// Add: the addition of T.
template <class T, class Add>
void combine_wide(ReduceOp op, const std::byte* piece, std::byte* sums, int64_t n, const Add& add) {
  // If neither is greater the result is b, so a NaN in b propagates; a NaN in a is kept explicitly.
  if (op == ReduceOp::max) return each<T>(piece, sums, n, [](T a, T b) { return a > b || a != a ? a : b; });
  if (op == ReduceOp::min) return each<T>(piece, sums, n, [](T a, T b) { return a < b || a != a ? a : b; });
  each<T>(piece, sums, n, add);
}

void combine_as_they_lie(DType dtype, ReduceOp op, const std::byte* piece, std::byte* sums, int64_t n) {
  if (dtype == DType::f64) return combine_wide<double>(op, piece, sums, n, [](double a, double b) { return a + b; });
  if (is_integer(dtype))
    return combine_wide<int64_t>(
        op, piece, sums, n, [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); });
  combine_wide<float>(op, piece, sums, n, [](float a, float b) { return a + b; });
}

bool is_wide(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i64; }

}  // namespace

int64_t sum_bytes_of(DType dtype, SumType sums) {
  if (sums == SumType::own) return bytes_of(dtype);
  return dtype == DType::f64 || is_integer(dtype) ? 8 : 4;
}

void widen(DType dtype, const std::byte* piece, std::byte* sums, int64_t n) {
  if (dtype == DType::bf16) return convert<uint16_t, float>(piece, sums, n, [](uint16_t half) { return wide_of_bf16(half); });
  if (dtype == DType::f16) return widen_f16(piece, sums, n);
  if (dtype == DType::i32) return convert<int32_t, int64_t>(piece, sums, n, [](int32_t value) { return int64_t{value}; });
  if (dtype == DType::u8) return convert<uint8_t, int64_t>(piece, sums, n, [](uint8_t value) { return int64_t{value}; });
  vector_copy(sums, piece, static_cast<size_t>(n * bytes_of(dtype)));
}

void combine(DType dtype, ReduceOp op, const std::byte* piece, std::byte* sums, int64_t n) {
  if (is_wide(dtype)) return combine_as_they_lie(dtype, op, piece, sums, n);
  alignas(64) std::array<std::byte, kBlock * 8> block;
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t count = std::min(kBlock, n - done);
    widen(dtype, piece + done * bytes_of(dtype), block.data(), count);
    combine_as_they_lie(dtype, op, block.data(), sums + done * sum_bytes_of(dtype), count);
  }
}

void combine_rounded(DType dtype, const std::byte* piece, std::byte* sums, int64_t n) {
  if (is_wide(dtype)) return combine_as_they_lie(dtype, ReduceOp::sum, piece, sums, n);
  std::array<std::byte, kBlock * 2> rounded;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t count = std::min(kBlock, n - done);
    std::byte* const own = sums + done * sum_bytes_of(dtype);
    combine(dtype, ReduceOp::sum, piece + done * bytes_of(dtype), own, count);
    narrow(dtype, own, rounded.data(), count);
    widen(dtype, rounded.data(), own, count);
  }
}

void divide(DType dtype, int count, std::byte* sums, int64_t n) {
  if (dtype == DType::f64) {
    for (int64_t i = 0; i < n; ++i) store(sums, i, load<double>(sums, i) / count);
  } else {
    for (int64_t i = 0; i < n; ++i) store(sums, i, load<float>(sums, i) / static_cast<float>(count));
  }
}

void narrow(DType dtype, const std::byte* sums, std::byte* to, int64_t n) {
  if (dtype == DType::bf16) return convert<float, uint16_t>(sums, to, n, [](float value) { return bf16_from(value); });
  if (dtype == DType::f16) return narrow_f16(sums, to, n);
  if (dtype == DType::i32) return convert<int64_t, int32_t>(sums, to, n, [](int64_t value) { return static_cast<int32_t>(value); });
  if (dtype == DType::u8) return convert<int64_t, uint8_t>(sums, to, n, [](int64_t value) { return static_cast<uint8_t>(value); });
  vector_copy(to, sums, static_cast<size_t>(n * bytes_of(dtype)));
}

}  // namespace st

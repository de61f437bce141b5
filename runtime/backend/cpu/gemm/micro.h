// The micro-kernel: an R x (V vectors) tile of C in registers, updated for every k by the outer product of a column of A (each element
// broadcast) and a row of B. 14 x 2 vectors take 28 of AVX-512's 32 registers, 6 x 2 take 12 of AVX2's 16: enough independent sums to hide
// the latency of a fused multiply-add. Rows and vectors are template arguments, so that every sum has its own register.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "backend/cpu/gemm/cells.h"

namespace st::cpu::ST_ISA::micro {

class LinesAhead;

/// Where a tile is written, and how it is finished.
struct TileOut {
  float* c;
  int64_t stride;                 // elements between rows of c
  int64_t columns;                // valid columns, up to V * kWidth; others are neither read nor written
  int64_t rows = 0;               // valid rows, for tile kernels
  const float* resume = nullptr;  // sums so far of this K block, in whole vectors; null: start at zero
  int64_t resume_stride = 0;
  const float* sum = nullptr;  // partial sums of earlier K blocks, added first; often c itself
  int64_t sum_stride = 0;
  bool finish = true;  // last K block: apply alpha, beta and bias
  float alpha = 1, beta = 0;
  const float* bias = nullptr;   // for these columns
  const void* target = nullptr;  // memory of the finished tile, for tile kernels to prefetch: rows target_step bytes apart; null: do not
  int64_t target_step = 0;
  const Cell* ahead = nullptr;  // input of a later tile: prefetched into L2, `ahead_step` cells per k
  int64_t ahead_step = 0;
  LinesAhead* lines = nullptr;  // the same for tile kernels
  Cell* packed = nullptr;       // where packing_kernel() writes B
};

/// Sum over k of a(r, k) * b(k, :): a(r, k) = a[r * kRowStride + k * kStep], row k of B starts at b + k * b_stride. All in cells, k too.
using MicroKernel = void (*)(int64_t k, const Cell* a, const Cell* b, int64_t b_stride, const TileOut& out);

namespace detail {

template <int V>
struct TileRow {
  Lanes v[V];
};

template <int V>
struct FactorRow {
  Factors v[V];
};

template <int V>
ST_MICRO void update_row(TileRow<V>& row, Factors a, const FactorRow<V>& b) {
  row.v[0] = fma(a, b.v[0], row.v[0]);
  if constexpr (V > 1) row.v[1] = fma(a, b.v[1], row.v[1]);
}

template <int V>
ST_MICRO FactorRow<V> load_factors(const Cell* p) {
  FactorRow<V> row;
  row.v[0] = load(p);
  if constexpr (V > 1) row.v[1] = load(p + kWidth);
  return row;
}

template <int V>
ST_MICRO TileRow<V> load_row(const float* p) {
  TileRow<V> row;
  row.v[0] = load(p);
  if constexpr (V > 1) row.v[1] = load(p + kWidth);
  return row;
}

/// Finishes a partial tile, or one accumulated into C, row by row from memory: one copy for all tile shapes. The same arithmetic as
/// finish_tile().
[[gnu::noinline]] inline void finish_rows(int64_t rows, int64_t width, const float* tile, const TileOut& out) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < std::min(width, out.columns); j += kWidth) {
      const int64_t n = std::min<int64_t>(kWidth, out.columns - j);
      const auto read = [n](const float* p) __attribute__((always_inline)) { return n == kWidth ? load(p) : load(p, n); };
      float* c = out.c + r * out.stride + j;
      Lanes x = load(tile + r * width + j);
      if (out.sum != nullptr) x = read(out.sum + r * out.sum_stride + j) + x;
      if (out.finish) {
        if (out.alpha != 1) x = x * broadcast(out.alpha);
        if (out.beta != 0) x = x + read(c) * broadcast(out.beta);
        if (out.bias != nullptr) x = x + read(out.bias + j);
      }
      if (n == kWidth) {
        store(c, x);
      } else {
        store(c, x, n);
      }
    }
  }
}

template <int V>
ST_MICRO void store_row(float* p, const TileRow<V>& row) {
  store(p, row.v[0]);
  if constexpr (V > 1) store(p + kWidth, row.v[1]);
}

template <int V>
ST_MICRO void add_to(TileRow<V>& row, const TileRow<V>& x) {
  for (int v = 0; v < V; ++v) row.v[v] = row.v[v] + x.v[v];
}

template <int V>
ST_MICRO void scale_by(TileRow<V>& row, Lanes factor) {
  for (int v = 0; v < V; ++v) row.v[v] = row.v[v] * factor;
}

template <int V, size_t... R>
ST_MICRO void finish_tile(std::index_sequence<R...>, TileRow<V> (&sums)[sizeof...(R)], const TileOut& out) {
  if (out.columns != V * kWidth || (out.finish && out.beta != 0)) [[unlikely]] {
    alignas(64) float tile[sizeof...(R) * V * kWidth];
    (store_row<V>(tile + R * V * kWidth, sums[R]), ...);
    return finish_rows(sizeof...(R), V * kWidth, tile, out);
  }
  if (out.sum != nullptr) (add_to<V>(sums[R], load_row<V>(out.sum + static_cast<int64_t>(R) * out.sum_stride)), ...);
  if (out.finish && out.alpha != 1) {
    const Lanes alpha = broadcast(out.alpha);
    (scale_by<V>(sums[R], alpha), ...);
  }
  if (out.finish && out.bias != nullptr) {
    const TileRow<V> bias = load_row<V>(out.bias);
    (add_to<V>(sums[R], bias), ...);
  }
  (store_row<V>(out.c + static_cast<int64_t>(R) * out.stride, sums[R]), ...);
}

/// Prefetches the panels from L2 earlier than the hardware does (AVX-512 on Zen 4). Narrower vectors were not measured and rely on the
/// hardware.
template <int V, int64_t kStep>
ST_MICRO void prefetch_panels(const Cell* a, const Cell* b, int64_t b_stride) {
  constexpr int64_t kStepsOfA = 12, kStepsOfB = 8;
  if constexpr (kWidth == 16) {
    __builtin_prefetch(a + kStepsOfA * kStep);
    __builtin_prefetch(b + kStepsOfB * b_stride);
    if constexpr (V > 1) __builtin_prefetch(b + kStepsOfB * b_stride + kWidth);
  }
}

template <int V, int64_t kRowStride, int64_t kStep, bool kPacks = false, size_t... R>
ST_MICRO void tile(std::index_sequence<R...>, int64_t k, const Cell* a, const Cell* b, int64_t b_stride, const TileOut& out) {
  (__builtin_prefetch(out.c + static_cast<int64_t>(R) * out.stride, 1), ...);
  if constexpr (V > 1) (__builtin_prefetch(out.c + static_cast<int64_t>(R) * out.stride + kWidth, 1), ...);
  TileRow<V> sums[sizeof...(R)] = {};
  if (out.resume != nullptr) ((sums[R] = load_row<V>(out.resume + static_cast<int64_t>(R) * out.resume_stride)), ...);
  // The last rows of a block of scores are few: unrolling their kernels would take most of the library's code for little time.
  constexpr bool kUnrolled = kStep == static_cast<int64_t>(sizeof...(R)) || sizeof...(R) == kTileRows;
  const Cell* ahead = out.ahead != nullptr ? out.ahead : b;
  [[maybe_unused]] Cell* packed = out.packed;
  const auto step = [&]() __attribute__((always_inline)) {
    prefetch_panels<V, kStep>(a, b, b_stride);
    __builtin_prefetch(ahead, 0, 2);
    ahead += out.ahead_step;
    const FactorRow<V> row = load_factors<V>(b);
    if constexpr (kPacks) {
      for (int v = 0; v < V; ++v) store(packed + v * kWidth, row.v[v]);
      packed += V * kWidth;
    }
    (update_row<V>(sums[R], broadcast(a[static_cast<int64_t>(R) * kRowStride]), row), ...);
    a += kStep;
    b += b_stride;
  };
  if constexpr (kUnrolled) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < k; ++i) step();
  } else {
    for (int64_t i = 0; i < k; ++i) step();
  }
  finish_tile<V>(std::index_sequence<R...>(), sums, out);
}

}  // namespace detail

template <int R, int V, int64_t kRowStride, int64_t kStep, bool kPacks = false>
void micro_kernel(int64_t k, const Cell* a, const Cell* b, int64_t b_stride, const TileOut& out) {
  detail::tile<V, kRowStride, kStep, kPacks>(std::make_index_sequence<R>(), k, a, b, b_stride, out);
}

namespace detail {

template <size_t... R>
constexpr MicroKernel packed_kernel(std::index_sequence<R...>, int rows, int vectors) {
  constexpr MicroKernel kOne[] = {micro_kernel<static_cast<int>(R) + 1, 1, 1, static_cast<int64_t>(R) + 1>...};
  constexpr MicroKernel kTwo[] = {micro_kernel<static_cast<int>(R) + 1, 2, 1, static_cast<int64_t>(R) + 1>...};
  return vectors == 1 ? kOne[rows - 1] : kTwo[rows - 1];
}

}  // namespace detail

constexpr bool kHasPackingKernel = !kPairs && kWidth == 16;

/// The kernel for a packed panel of A and a whole panel of B that is read in place and packed on the way. Null: none for this number of
/// rows; rows divided evenly among more than two tiles always have one.
inline MicroKernel packing_kernel([[maybe_unused]] int64_t rows) {
  if constexpr (kHasPackingKernel) {
    if (rows == kTileRows) return micro_kernel<kTileRows, 2, 1, kTileRows, true>;
    if (rows == kTileRows - 1) return micro_kernel<kTileRows - 1, 2, 1, kTileRows - 1, true>;
  }
  return nullptr;
}

#if !defined(ST_BF16_TILES)
/// The kernel for a packed panel of A: `rows` (1..kTileRows) consecutive elements for each k.
inline MicroKernel packed_kernel(int64_t rows, int64_t vectors) {
  return detail::packed_kernel(std::make_index_sequence<kTileRows>(), static_cast<int>(rows), static_cast<int>(vectors));
}
#endif

/// Rows that strided_kernel() takes next of `left`: a whole tile or a power of two. A kernel for each number would be 50 kB of code for the
/// last rows of a block of scores.
inline int64_t rows_at_once(int64_t left) {
  return left >= kTileRows ? kTileRows : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(left)));
}

/// The kernel for A read in place, with strides known at compile time. `rows`: a value of rows_at_once().
template <int64_t kRowStride, int64_t kStep>
MicroKernel strided_kernel(int64_t rows, int64_t vectors) {
  const auto of = [vectors](auto r) -> MicroKernel {
    return vectors == 1 ? micro_kernel<r, 1, kRowStride, kStep> : micro_kernel<r, 2, kRowStride, kStep>;
  };
  if (rows == kTileRows) return of(std::integral_constant<int, kTileRows>());
  switch (rows) {
    case 8:
      return of(std::integral_constant < int, kTileRows<8 ? kTileRows : 8>());
    case 4:
      return of(std::integral_constant<int, 4>());
    case 2:
      return of(std::integral_constant<int, 2>());
    default:
      return of(std::integral_constant<int, 1>());
  }
}

}  // namespace st::cpu::ST_ISA::micro

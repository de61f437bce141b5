// The micro-kernel for processors with tile registers: 32 x 32 of C in four registers of 16 x 16, updated for every 32 elements of K by two
// tiles of A (16 rows of 16 pairs) and two of B (16 pairs of rows, 16 columns wide). Four products per four loads: the loads keep up as
// long as one side comes from L1.
#pragma once

#include <algorithm>
#include <array>

#include "backend/cpu/gemm/lines_ahead.h"
#include "backend/cpu/gemm/micro.h"

namespace st::cpu::ST_ISA::micro {

constexpr int64_t kTile = 16;  // rows, and cells in a row: 64 bytes

/// Eight tiles, initially zero. A thread has tile state only during the lifetime of this object, so the host's threads are left as they
/// were, and context switches at other times need not save tiles.
class TileRegisters {
 public:
  /// For a task with `task_rows` rows of C: up to 32 the tiles of A and C are configured with just these rows.
  explicit TileRegisters(int64_t task_rows = 2 * kTile) {
    struct alignas(64) Configuration {
      std::array<uint8_t, 16> palette = {1};
      std::array<uint16_t, 16> row_bytes = {64, 64, 64, 64, 64, 64, 64, 64};
      std::array<uint8_t, 16> rows = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static_assert(sizeof(Configuration) == 64);
    Configuration shape;
    if (task_rows < 2 * kTile) {
      const auto upper = static_cast<uint8_t>(std::min(task_rows, kTile)), lower = static_cast<uint8_t>(std::max(task_rows - kTile, kOne));
      shape.rows = {upper, upper, lower, lower, upper, lower, 16, 16};
    }
    // The intrinsics do not tell the compiler which memory they read.
    __asm__ volatile("" : : "m"(shape));
    _tile_loadconfig(&shape);
  }
  ~TileRegisters() { _tile_release(); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

 private:
  static constexpr int64_t kOne = 1;
};

namespace detail {

ST_MICRO void clear_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

template <int R, int V>
ST_MICRO void load_sums(const float* p, int64_t stride) {
  const int64_t bytes = stride * 4;
  _tile_loadd(0, p, bytes);
  if constexpr (V > 1) _tile_loadd(1, p + kTile, bytes);
  if constexpr (R > 1) _tile_loadd(2, p + kTile * stride, bytes);
  if constexpr (R > 1 && V > 1) _tile_loadd(3, p + kTile * stride + kTile, bytes);
}

template <int R, int V>
ST_MICRO void store_sums(float* p, int64_t stride) {
  const int64_t bytes = stride * 4;
  _tile_stored(0, p, bytes);
  if constexpr (V > 1) _tile_stored(1, p + kTile, bytes);
  if constexpr (R > 1) _tile_stored(2, p + kTile * stride, bytes);
  if constexpr (R > 1 && V > 1) _tile_stored(3, p + kTile * stride + kTile, bytes);
}

template <int R, int V>
ST_MICRO void multiply_tiles(int64_t k, const Cell* a, const Cell* b, int64_t b_stride, const TileOut& out) {
  LinesAhead::Cursor ahead(out.lines);
  const int64_t target_rows =
      out.target == nullptr || k == 0 ? 0 : (out.rows * kTile + k - 1) / k;  // a few rows at a time: all at once would block the loads
  const char* target = static_cast<const char*>(out.target);
  const char* const target_end = target + out.rows * out.target_step;
  for (; k > 0; k -= kTile) {
    _tile_loadd(6, b, kTile * 4);
    _tile_loadd(4, a, kTile * 4);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (V > 1) {
      _tile_loadd(7, b + kTile * kTile, kTile * 4);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (R > 1) {
      _tile_loadd(5, a + kTile * kTile, kTile * 4);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (V > 1) _tile_dpbf16ps(3, 5, 7);
    }
    for (int64_t row = 0; row < target_rows && target < target_end; ++row, target += out.target_step) {
      __builtin_prefetch(target, 1);
      __builtin_prefetch(target + 64, 1);
    }
    ahead.fetch();
    a += R * kTile * kTile;
    b += kTile * b_stride;
  }
  ahead.leave();
}

/// Sums start from those of the previous K block, in either of its layouts; the bits are the same.
template <int R, int V>
void tile_kernel(int64_t k, const Cell* a, const Cell* b, int64_t b_stride, const TileOut& out) {
  if (k == 0 && out.resume != nullptr) {
    TileOut rest = out;
    rest.sum = nullptr;
    return finish_rows(out.rows, out.resume_stride, out.resume, rest);
  }
  // The intrinsics do not tell the compiler which memory they read.
  __asm__ volatile("" ::: "memory");
  const float* const before = out.resume != nullptr ? out.resume : out.sum;
  const int64_t before_stride = out.resume != nullptr ? out.resume_stride : out.sum_stride;
  const bool whole = out.rows == R * kTile && out.columns == V * kTile;
  if (whole && (!out.finish || (out.alpha == 1 && out.beta == 0 && out.bias == nullptr))) [[likely]] {
    if (before != nullptr) {
      load_sums<R, V>(before, before_stride);
    } else {
      clear_sums();
    }
    multiply_tiles<R, V>(k, a, b, b_stride, out);
    return store_sums<R, V>(out.c, out.stride);
  }
  alignas(64) float sums[R * kTile * V * kTile] = {};
  for (int64_t r = 0; before != nullptr && r < out.rows; ++r) std::copy_n(before + r * before_stride, out.columns, sums + r * V * kTile);
  __asm__ volatile("" ::: "memory");
  load_sums<R, V>(sums, V * kTile);
  multiply_tiles<R, V>(k, a, b, b_stride, out);
  store_sums<R, V>(sums, V * kTile);
  TileOut rest = out;
  rest.sum = nullptr;
  finish_rows(out.rows, V * kTile, sums, rest);
}

}  // namespace detail

/// For a panel of A padded to whole tiles.
inline MicroKernel packed_kernel(int64_t rows, int64_t vectors) {
  if (rows > kTile) return vectors > 1 ? detail::tile_kernel<2, 2> : detail::tile_kernel<2, 1>;
  return vectors > 1 ? detail::tile_kernel<1, 2> : detail::tile_kernel<1, 1>;
}

}  // namespace st::cpu::ST_ISA::micro

// Packing: a panel is `width` rows of op(A) (or columns of op(B)) in the order in which the micro-kernel reads it: all of the panel's
// elements for k = 0, then for k = 1, ... 16-bit elements are widened.
#pragma once

#include <algorithm>
#include <utility>

#include "backend/cpu/convert.h"
#include "backend/cpu/gemm/lanes.h"

namespace st::cpu::ST_ISA::micro {

/// An operand in the coordinates of its panels: element (across, k) is at across * across_stride + k * k_stride.
template <class T>
struct PanelSource {
  const T* data;
  int64_t across_stride, k_stride;
  PanelSource at(int64_t across, int64_t k) const { return {data + across * across_stride + k * k_stride, across_stride, k_stride}; }
};

constexpr int64_t kLine = 64, kRowsAhead = 8;

namespace detail {

template <class T>
ST_MICRO Lanes load_widened(const T* p) {
  if constexpr (std::is_same_v<T, float>) {
    return load(p);
  } else {
    return st::cpu::ST_ISA::load(p);
  }
}

template <class T>
ST_MICRO Lanes load_widened(const T* p, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    return load(p, n);
  } else {
    float lanes[kWidth] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i] = widen(p[i]);
    return load(lanes);
  }
}

template <size_t... I>
ST_MICRO Lanes interleave_low(Lanes a, Lanes b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, static_cast<int>(I % 2 * kWidth + I / 2)...);
}
template <size_t... I>
ST_MICRO Lanes interleave_high(Lanes a, Lanes b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, static_cast<int>(I % 2 * kWidth + I / 2 + kWidth / 2)...);
}

/// log2(kWidth) perfect shuffles of whole rows are a transpose.
template <size_t... I>
ST_MICRO void shuffle_once(Lanes (&rows)[kWidth], std::index_sequence<I...>) {
  const Lanes next[kWidth] = {(I % 2 == 0 ? interleave_low(rows[I / 2], rows[I / 2 + kWidth / 2], std::make_index_sequence<kWidth>())
                                          : interleave_high(rows[I / 2], rows[I / 2 + kWidth / 2], std::make_index_sequence<kWidth>()))...};
  ((rows[I] = next[I]), ...);
}

ST_MICRO void transpose(Lanes (&rows)[kWidth]) {
  constexpr auto kAll = std::make_index_sequence<kWidth>();
  shuffle_once(rows, kAll);
  shuffle_once(rows, kAll);
  if constexpr (kWidth > 4) shuffle_once(rows, kAll);
  if constexpr (kWidth > 8) shuffle_once(rows, kAll);
}

}  // namespace detail

/// One row of a contiguous panel: `valid` elements and zeros up to `width`. Stores whole vectors unless they would cross `end`.
template <class T>
ST_MICRO void pack_row(const T* row, int64_t valid, int64_t width, float* to, const float* end) {
  const auto put = [end](float* at, Lanes v, int64_t n) {
    if (at + kWidth <= end) {
      store(at, v);
    } else {
      store(at, v, n);
    }
  };
  int64_t j = 0;
  for (; j + kWidth <= valid; j += kWidth) store(to + j, detail::load_widened(row + j));
  if (j < valid) put(to + j, detail::load_widened(row + j, valid - j), width - j);
  for (j = (valid + kWidth - 1) / kWidth * kWidth; j < width; j += kWidth) put(to + j, Lanes{}, width - j);
}

/// Packs `panels` adjacent whole panels with adjacent elements, row by row: long reads, each from the next few lines. `to` receives the
/// panels one after the other.
template <class T>
void pack_side_by_side(const PanelSource<T>& from, int64_t panels, int64_t width, int64_t k, int64_t panel_size, float* to) {
  for (int64_t i = 0; i < k; ++i) {
    const T* row = from.data + i * from.k_stride;
    // Rows are too far apart for the hardware to prefetch. Into L2: rows a power of two apart share a few sets of L1 and would evict each
    // other.
    for (int64_t j = 0; j < panels * width; j += kLine / static_cast<int64_t>(sizeof(T)))
      __builtin_prefetch(row + kRowsAhead * from.k_stride + j, 0, 2);
    for (int64_t p = 0; p < panels; ++p) {
      float* panel = to + p * panel_size;
      pack_row(row + p * width, width, width, panel + i * width, panel + k * width);
    }
  }
}

/// Packs `valid` <= width elements for each k; the panel's other elements become zero. `to` has room for width * k floats.
template <class T>
void pack_panel(const PanelSource<T>& from, int64_t valid, int64_t width, int64_t k, float* to) {
  // A whole vector may overlap later rows of this panel, which are written afterwards, but never the next panel.
  const float* const end = to + k * width;
  if (from.across_stride == 1) {
    for (int64_t i = 0; i < k; ++i) pack_row(from.data + i * from.k_stride, valid, width, to + i * width, end);
    return;
  }
  int64_t done = 0;
  if (from.k_stride == 1) {  // square blocks are transposed in registers; a few rows at a time are read to their end, as streams
    done = k / kWidth * kWidth;
    for (int64_t j = 0; j < width; j += kWidth) {
      for (int64_t d = 0; d < done; d += kWidth) {
        Lanes rows[kWidth];
        for (int64_t r = 0; r < kWidth; ++r)
          rows[r] = j + r < valid ? detail::load_widened(from.data + (j + r) * from.across_stride + d) : Lanes{};
        detail::transpose(rows);
        for (int64_t r = 0; r < kWidth; ++r) {
          float* at = to + (d + r) * width + j;
          if (width <= kWidth && at + kWidth <= end) {
            store(at, rows[r]);
          } else {
            store(at, rows[r], std::min<int64_t>(kWidth, width - j));
          }
        }
      }
    }
  }
  for (; done < k; ++done) {
    for (int64_t j = 0; j < width; ++j) {
      to[done * width + j] = j < valid ? static_cast<float>(widen(from.data[j * from.across_stride + done * from.k_stride])) : 0.0F;
    }
  }
}

}  // namespace st::cpu::ST_ISA::micro

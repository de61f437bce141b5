// y = (x - mean) rstd gamma + beta over rows of C elements; rms_norm: without mean and beta. A row is read once, into shared memory: its
// mean, then the sums of its differences from that, then y. Sums of a vector of 16 bytes are in fp32, those of vectors in fp64. Backward,
// with n = (x - mean) rstd and g = dy gamma: dx = rstd (g - sum(g) / C - n sum(g n) / C); dgamma = sum_rows dy n and dbeta = sum_rows dy. A
// block takes a fixed number of rows, in tiles: first dx, a row by each group of threads, then each thread adds the tile's rows to some
// columns' sums, for which it reads the tile again, from the multiprocessor's cache. A second kernel adds the blocks' sums (pieces.cuh).
// Rows whose squares leave fp32's range are computed in fp64 (backend/README.md; the bounds are those of cpu/norm_row.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include <device/threads.h>

#include "backend/cuda/norm_blocks.h"
#include "backend/cuda/rows.cuh"

namespace st::cuda {

/// Whether fp32 represents the squares of a row; `square`: their mean plus epsilon. Below the bound terms that count may be zeros.
template <class C>
DEVICE bool holds_squares(double square) {
  return !std::is_same_v<C, float> || (square >= 0x1p-80 && is_finite(square));
}
/// The same, from the stored rstd.
template <class C>
DEVICE bool holds_squares_of(C rstd) {
  return !std::is_same_v<C, float> || (rstd >= C(0x1p-60) && rstd <= C(0x1p40));
}
/// Whether fp32 represents the terms of the gradient, given their sums: near the end of the range their differences would overflow.
template <class C>
DEVICE bool holds_terms(double sums) {
  return !std::is_same_v<C, float> || sums < 0x1p120;
}

/// gamma or beta: of T; if wide, of fp32 with a 16-bit T.
template <class T, int kEach>
DEVICE void read_scales(Compute<T> (&to)[kEach], const void* scales, bool is_wide, int64_t at, int count) {
  if constexpr (!std::is_same_v<T, Compute<T>>) {
    if (is_wide) return read_some(to, static_cast<const float*>(scales) + at, count);
  }
  read_some(to, static_cast<const T*>(scales) + at, count);
}

// In fp64, over input 0 of the row.
template <class Row>
DEVICE double exact_mean(const Row& row) {
  double sum = 0;
  row.each([&](int64_t /*at*/, const auto& x, int count) {
    for (int i = 0; i < Row::kEach; ++i)  // a bound that the compiler knows keeps x in registers
      if (i < count) sum += static_cast<double>(x[0][i]);
  });
  return row.group.reduced(sum, Sum{}) / static_cast<double>(row.size);
}
template <class Row>
DEVICE double exact_rstd(const Row& row, double mean, double epsilon) {
  double squares = 0;
  row.each([&](int64_t /*at*/, const auto& x, int count) {
    for (int i = 0; i < Row::kEach; ++i) {
      const double d = i < count ? static_cast<double>(x[0][i]) - mean : 0;
      squares += d * d;
    }
  });
  return 1 / sqrt(row.group.reduced(squares, Sum{}) / static_cast<double>(row.size) + epsilon);
}

/// A row's norm: n = (x - origin) rstd + shift rstd. The origin is the mean rounded to C, the shift what it lacks, negative; both 0 unless
/// centered.
template <class C>
struct RowNorm {
  C origin, shift, rstd;
  double mean;
  bool is_held;  // by fp32
};
template <class Row>
DEVICE auto row_norm(const Row& row, bool centered, double epsilon) {
  using C = typename Row::C;
  const auto size = static_cast<double>(row.size);
  RowNorm<C> norm{};
  if (centered) {
    double sum = 0;
    row.each([&](int64_t /*at*/, const auto& x, int count) { sum += sum_of_some(x[0], count); });
    norm.origin = static_cast<C>(row.group.reduced(sum, Sum{}) / size);
  }
  double sums[2] = {};  // of the differences from the origin, and of their squares
  row.each([&](int64_t /*at*/, const auto& x, int count) {
    C differences = 0, squares = 0;
    for (int i = 0; i < Row::kEach; ++i) {
      const C d = i < count ? x[0][i] - norm.origin : C(0);
      differences += d;
      squares = fused(d, d, squares);
    }
    sums[0] += static_cast<double>(differences);
    sums[1] += static_cast<double>(squares);
  });
  row.group.reduce(sums, Sum{});
  const double shift = centered ? sums[0] / size : 0, variance = sums[1] / size - shift * shift;
  const double square = (variance < 0 ? 0 : variance) + epsilon;
  norm.shift = static_cast<C>(-shift);
  norm.mean = static_cast<double>(norm.origin) + shift;
  norm.rstd = static_cast<C>(1 / sqrt(square));
  norm.is_held = holds_squares<C>(square);
  return norm;
}

/// y = n gamma + beta for a vector, n in C or in fp64.
template <class T, int kEach, class Normal>
DEVICE void store_norm(const Normal (&normal)[kEach], const void* gamma, const void* beta, bool is_wide, T* y, int64_t at, int count) {
  using C = Compute<T>;
  C scales[kEach], shifts[kEach]{}, made[kEach];
  read_scales<T>(scales, gamma, is_wide, at, count);
  if (beta != nullptr) read_scales<T>(shifts, beta, is_wide, at, count);
  for (int i = 0; i < kEach; ++i)
    made[i] = static_cast<C>(fused(normal[i], static_cast<Normal>(scales[i]), static_cast<Normal>(shifts[i])));
  store_some(y + at, made, count);
}

/// mean and beta: null unless centered.
template <class T>
KERNEL(kBlock)
norm_rows(Group group, const T* x, const void* gamma, const void* beta, bool is_wide, double epsilon, int64_t rows, int64_t columns, T* y,
          Compute<T>* mean, Compute<T>* rstd) {
  using C = Compute<T>;
  using Row = Rows<T, 8>;
  constexpr int kEach = Row::kEach;
  SHARED(typename Row::Part, held, Row::kShared);
  const int64_t r = group.index();
  if (r >= rows) return;
  const bool centered = beta != nullptr;
  const Row row(group, {{x + r * columns}}, columns, held);
  T* const to = y + r * columns;
  RowNorm<C> norm = row_norm(row, centered, epsilon);
  if (norm.is_held) {
    const C rest = norm.shift * norm.rstd;
    row.each([&](int64_t at, const auto& own, int count) {
      C normal[kEach];
      for (int i = 0; i < kEach; ++i) normal[i] = fused(own[0][i] - norm.origin, norm.rstd, rest);
      store_norm(normal, gamma, beta, is_wide, to, at, count);
    });
  } else {
    norm.mean = centered ? exact_mean(row) : 0;
    const double exact = exact_rstd(row, norm.mean, epsilon);
    norm.rstd = static_cast<C>(exact);
    row.each([&](int64_t at, const auto& own, int count) {
      double normal[kEach];
      for (int i = 0; i < kEach; ++i) normal[i] = (static_cast<double>(own[0][i]) - norm.mean) * exact;
      store_norm(normal, gamma, beta, is_wide, to, at, count);
    });
  }
  if (group.thread() != 0) return;
  if (centered) store_one(mean + r, static_cast<C>(norm.mean));
  store_one(rstd + r, norm.rstd);
}

// --- backward

/// A row's numbers that the sums of columns need.
struct TileRow {
  double mean, rstd;
  bool is_held;
};

/// The gradient in N, C or fp64, of a row whose inputs are x and dy.
template <class N, class T, class Row>
struct RowGradient {
  using C = Compute<T>;
  static constexpr int kEach = Row::kEach;
  const Row& row;
  N mean, rstd;
  const void* gamma;
  bool is_wide, centered;

  /// Sums of g (0 unless centered) and g n over the row.
  DEVICE void add(double (&sums)[2]) const {
    sums[0] = sums[1] = 0;
    row.each([&](int64_t at, const auto& own, int count) {
      C scales[kEach];
      read_scales<T>(scales, gamma, is_wide, at, count);
      N along_one = 0, along_normal = 0;
      for (int i = 0; i < kEach; ++i) {
        if (i >= count) continue;
        const N g = static_cast<N>(own[1][i]) * static_cast<N>(scales[i]);
        along_one += g;
        along_normal += g * ((static_cast<N>(own[0][i]) - mean) * rstd);
      }
      sums[0] += static_cast<double>(along_one);
      sums[1] += static_cast<double>(along_normal);
    });
    row.group.reduce(sums, Sum{});
    if (!centered) sums[0] = 0;
  }
  DEVICE void store(const double (&sums)[2], T* dx) const {
    const auto size = static_cast<double>(row.size);
    const N along_one = static_cast<N>(sums[0] / size), along_normal = static_cast<N>(sums[1] / size);
    row.each([&](int64_t at, const auto& own, int count) {
      C scales[kEach], made[kEach];
      read_scales<T>(scales, gamma, is_wide, at, count);
      for (int i = 0; i < kEach; ++i) {
        const N normal = (static_cast<N>(own[0][i]) - mean) * rstd, g = static_cast<N>(own[1][i]) * static_cast<N>(scales[i]);
        made[i] = static_cast<C>(rstd * (g - along_one - normal * along_normal));
      }
      store_some(dx + at, made, count);
    });
  }
};

/// dx of one row; returns what its columns' sums need.
template <class T, class Row>
DEVICE TileRow norm_row_gradient(const Row& row, const void* gamma, bool is_wide, bool centered, Compute<T> mean, Compute<T> rstd, T* dx) {
  using C = Compute<T>;
  TileRow found = {static_cast<double>(mean), static_cast<double>(rstd), holds_squares_of(rstd)};
  double sums[2];
  bool is_held = found.is_held;
  if (is_held) {
    const RowGradient<C, T, Row> gradient{row, mean, rstd, gamma, is_wide, centered};
    gradient.add(sums);
    is_held = holds_terms<C>(fabs(sums[0]) + fabs(sums[1]));
    if (is_held) gradient.store(sums, dx);
  }
  if (is_held) return found;
  const double exact = centered ? exact_mean(row) : 0;
  // A stored 0 is below fp32's range, for a row where epsilon is negligible.
  const double root = rstd == C(0) ? exact_rstd(row, exact, 0) : static_cast<double>(rstd);
  const RowGradient<double, T, Row> gradient{row, exact, root, gamma, is_wide, centered};
  gradient.add(sums);
  gradient.store(sums, dx);
  return found.is_held ? found : TileRow{exact, root, false};
}

/// Elements of a thread's columns: 16 bytes of fp32.
template <class T>
constexpr int kOfColumns = static_cast<int>(16 / sizeof(Compute<T>));

/// Adds a tile's rows to the sums of columns, [gamma's, beta's if centered][stride]; is_first: nothing was added to them before.
template <class T>
DEVICE void add_tile(const TileRow* tile, int rows, const T* x, const T* dy, int64_t columns, bool centered, Compute<T>* sums,
                     int64_t stride, bool is_first) {
  using C = Compute<T>;
  constexpr int kEach = kOfColumns<T>;
  for (int64_t at = int64_t{thread_index()} * kEach; at < columns; at += kBlock * kEach) {
    const int count = columns - at < kEach ? static_cast<int>(columns - at) : kEach;
    C of_gamma[kEach] = {}, of_beta[kEach] = {};
    for (int r = 0; r < rows; ++r) {
      C own[kEach], up[kEach];
      read_some(own, x + r * columns + at, count);
      read_some(up, dy + r * columns + at, count);
      if (tile[r].is_held) {
        const C mean = static_cast<C>(tile[r].mean), rstd = static_cast<C>(tile[r].rstd);
        for (int i = 0; i < kEach; ++i) of_gamma[i] = fused(up[i], (own[i] - mean) * rstd, of_gamma[i]);
      } else {
        const double mean = tile[r].mean, rstd = tile[r].rstd;
        for (int i = 0; i < kEach; ++i)
          of_gamma[i] += static_cast<C>(static_cast<double>(up[i]) * (static_cast<double>(own[i]) - mean) * rstd);
      }
      for (int i = 0; i < kEach; ++i) of_beta[i] += up[i];
    }
    for (int i = 0; i < kEach; ++i) {
      if (i >= count) continue;
      sums[at + i] = is_first ? of_gamma[i] : sums[at + i] + of_gamma[i];
      if (centered) sums[stride + at + i] = is_first ? of_beta[i] : sums[stride + at + i] + of_beta[i];
    }
  }
}

/// Columns whose sums a block keeps in shared memory. Those of longer rows are in the workspace from the start.
template <class T>
constexpr int kSharedColumns = static_cast<int>(8192 / sizeof(Compute<T>));

/// means: null unless centered. partial: [blocks][dgamma, and dbeta if centered][columns]
template <class T>
KERNEL(kBlock)
norm_gradients(Group group, const T* x, const void* gamma, bool is_wide, const Compute<T>* means, const Compute<T>* rstds, const T* dy,
               int64_t rows, int64_t rows_of_block, int64_t columns, T* dx, Compute<T>* partial) {
  using C = Compute<T>;
  using Row = Rows<T, 3 * kOfVector<T> / kOfColumns<T>, 2, kOfColumns<T>>;  // more of 16 bits would not fit into registers
  SHARED(typename Row::Part, held, Row::kShared);
  SHARED(C, kept, 2 * kSharedColumns<T>);
  SHARED(TileRow, tile, kRowsOfTile);
  const bool centered = means != nullptr, is_kept = columns <= kSharedColumns<T>;
  const int64_t first = block_index() * rows_of_block, last = first + rows_of_block < rows ? first + rows_of_block : rows;
  C* const own = partial + block_index() * (centered ? 2 : 1) * columns;
  for (int64_t begin = first; begin < last; begin += kRowsOfTile) {
    const int count = last - begin < kRowsOfTile ? static_cast<int>(last - begin) : kRowsOfTile;
    for (int i = group.in_block(); i < count; i += group.of_block()) {
      const int64_t r = begin + i, at = r * columns;
      const Row row(group, {{x + at, dy + at}}, columns, held);
      const TileRow found =
          norm_row_gradient(row, gamma, is_wide, centered, centered ? flushed(means[r]) : C(0), flushed(rstds[r]), dx + at);
      if (group.thread() == 0) tile[i] = found;
    }
    sync_block();
    const int64_t at = begin * columns;
    add_tile(tile, count, x + at, dy + at, columns, centered, is_kept ? kept : own, is_kept ? kSharedColumns<T> : columns, begin == first);
    sync_block();
  }
  if (!is_kept) return;
  constexpr int kEach = kOfColumns<T>;  // as add_tile() has them
  for (int64_t at = int64_t{thread_index()} * kEach; at < columns; at += kBlock * kEach)
    for (int sum = 0; sum < (centered ? 2 : 1); ++sum)
      for (int64_t i = at; i < at + kEach && i < columns; ++i) own[sum * columns + i] = kept[sum * kSharedColumns<T> + i];
}

}  // namespace st::cuda

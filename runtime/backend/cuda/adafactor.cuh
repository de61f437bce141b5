// torch.optim.Adafactor on fp32 parameters (backend/reference/adafactor.cpp has the formula). A block of threads has a tile of 32 rows and
// 256 columns, a column a thread. All sums are in fp64, of tiles first and then over tiles, in an order that depends on the shape only:
//   square_gradient   squares of the gradient by row and by column of a tile, from one read
//   move_lines        the variances of rows, or columns, from the sums over tiles
//   scale_rows        a row's variance over the mean of all, which a column's is multiplied by
//   measure_update    squares of the update, which is computed again by update_tiles and not stored
//   set_step          the size of the step
// A slot, and an output that is 0 with skip, is not touched by kernels that do not check skip and faults.
#pragma once

#include <cmath>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/adafactor_layout.h"
#include "backend/cuda/block_reduce.cuh"
#include "backend/cuda/fused.cuh"
#include "backend/cuda/true_gradient.cuh"
#include "backend/cuda/update.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

static_assert(kTileWidth == kBlock);
constexpr int kRowsTogether = 4;  // rows of a tile that are read at a time

struct AdafactorAttrs {
  float least;  // variance
  double epsilon, epsilon2, clip_threshold, weight_decay, lr_scale, beta2_decay;
};

struct AdafactorNumbers {
  double take;  // how far a variance moves to a new one
  float step, shrink;
};
static_assert(sizeof(AdafactorNumbers) <= AdafactorLayout::kNumbers);

DEVICE float true_gradient(const void* gradient, GradientType type, float factor, int64_t at) {
  float g[1];
  true_gradients<1>(g, gradient, type, factor, at);
  return g[0];
}

/// The block's tile, and the thread's column in it.
struct OwnTile {
  int64_t matrix, down, across, row, column;
  int height;  // rows; 0: the thread has no column
  DEVICE OwnTile(const MatrixTiles& of)
      : matrix(block_index() / (of.down * of.across)),
        down(block_index() / of.across % of.down),
        across(block_index() % of.across),
        row(down * kTileHeight),
        column(across * kTileWidth + thread_index()),
        height(column >= of.columns          ? 0
               : of.rows - row < kTileHeight ? static_cast<int>(of.rows - row)
                                             : kTileHeight) {}
  /// The index of row i of the tile among all rows, and that of this thread's element in it.
  DEVICE int64_t row_at(const MatrixTiles& of, int i) const { return matrix * of.rows + row + i; }
  DEVICE int64_t at(const MatrixTiles& of, int i) const { return row_at(of, i) * of.columns + column; }
};

/// One thread. `rates`: as of the optimizer ops.
KERNEL(1)
set_take(AdafactorAttrs attrs, const double* rates, AdafactorNumbers* numbers) { numbers->take = pow(rates[1], attrs.beta2_decay); }

KERNEL(kBlock)
square_gradient(const void* gradient, GradientType type, const float* factor, MatrixTiles tiles, double* of_rows, double* of_columns) {
  SHARED(float, staged, kTileHeight* kTileWidth);
  const OwnTile tile(tiles);
  const float by = *factor;
  double sum = 0;
  for (int i = 0; i < kTileHeight; i += kRowsTogether) {
    float g[kRowsTogether] = {};
    UNROLL
    for (int j = 0; j < kRowsTogether; ++j)
      if (i + j < tile.height) g[j] = true_gradient(gradient, type, by, tile.at(tiles, i + j));
    UNROLL
    for (int j = 0; j < kRowsTogether; ++j) {
      staged[(i + j) * kTileWidth + thread_index()] = g[j];
      sum = with_square(sum, g[j]);
    }
  }
  if (tile.height > 0) of_columns[(tile.matrix * tiles.down + tile.down) * tiles.columns + tile.column] = sum;
  sync_block();
  const int lane = thread_index() % kLanes;
  for (int i = thread_index() / kLanes; i < kTileHeight; i += kBlock / kLanes) {
    double squares[1] = {0};
    for (int c = lane; c < kTileWidth; c += kLanes) squares[0] = with_square(squares[0], staged[i * kTileWidth + c]);
    reduce_over_warp(squares, Sum{});
    if (lane == 0 && tile.row + i < tiles.rows)
      of_rows[(tile.matrix * tiles.across + tile.across) * tiles.rows + tile.row + i] = squares[0];
  }
}

/// The sum of partial[p * lines] over p < pieces, one for each lane: warps take the pieces in turn, and their sums are added in order. The
/// first warp gets it.
DEVICE double sum_of_line(const double* partial, int64_t pieces, int64_t lines, bool is_here) {
  constexpr int kWarps = kBlock / kLanes;
  SHARED(double, of_warps, kBlock);
  const int lane = thread_index() % kLanes, warp = thread_index() / kLanes;
  double sum = 0;
  if (is_here)
    for (int64_t p = warp; p < pieces; p += kWarps) sum += partial[p * lines];
  of_warps[thread_index()] = sum;
  sync_block();
  for (int w = 1; w < kWarps; ++w) sum += of_warps[w * kLanes + lane];
  return sum;
}

DEVICE float moved(float from, double to, double take) {
  const double wide = from;
  return static_cast<float>(wide + take * (to - wide));
}

/// A block has 32 lines of a matrix. Moves their variances to the means of `others` squares.
KERNEL(kBlock)
move_lines(IndexFaults faults, const uint8_t* skip, const AdafactorNumbers* numbers, const double* partial, int64_t pieces, int64_t lines,
           double others, float* variance) {
  if (is_halted(faults, skip)) return;
  const int64_t of_matrix = (lines + kLanes - 1) / kLanes, matrix = block_index() / of_matrix;
  const int64_t line = block_index() % of_matrix * kLanes + thread_index() % kLanes;
  const bool is_here = line < lines;
  const double sum = sum_of_line(partial + matrix * pieces * lines + line, pieces, lines, is_here);
  if (!is_here || thread_index() >= kLanes) return;
  float& own = variance[matrix * lines + line];
  own = moved(own, sum / others, numbers->take);
}

/// sums[i] = that of line first + i, for i < count.
KERNEL(kBlock)
place_lines(const double* partial, int64_t pieces, int64_t lines, int64_t first, int64_t count, double* sums) {
  const int64_t i = int64_t{block_index()} * kLanes + thread_index() % kLanes;
  const double sum = sum_of_line(partial + first + i, pieces, lines, i < count);
  if (i < count && thread_index() < kLanes) sums[i] = sum;
}

KERNEL(kBlock)
clear_sums(double* sums, int64_t count) {
  const int64_t i = int64_t{block_index()} * kBlock + thread_index();
  if (i < count) sums[i] = 0;
}

/// Variances of lines from the sums of all ranks.
KERNEL(kBlock)
move_to_sums(IndexFaults faults, const uint8_t* skip, const AdafactorNumbers* numbers, const double* sums, int64_t lines, double others,
             float* variance) {
  const int64_t i = int64_t{block_index()} * kBlock + thread_index();
  if (i < lines && !is_halted(faults, skip)) variance[i] = moved(variance[i], sums[i] / others, numbers->take);
}

/// Variances of elements, with the cpu's bits. torch.lerp's two forms: at the first update v is exactly g^2.
KERNEL(kBlock)
move_elements(IndexFaults faults, const uint8_t* skip, const AdafactorNumbers* numbers, const void* gradient, GradientType type,
              const float* factor, float* variance, int64_t elements) {
  const int64_t i = int64_t{block_index()} * kBlock + thread_index();
  if (i >= elements || is_halted(faults, skip)) return;
  const double take = numbers->take;
  const float g = true_gradient(gradient, type, *factor, i), v = variance[i], square = g * g;
  variance[i] = take >= 0.5 ? fused(static_cast<float>(take - 1), square - v, square) : fused(static_cast<float>(take), square - v, v);
}

/// A block for each matrix.
KERNEL(kBlock)
scale_rows(const float* variance, int64_t rows, double epsilon, float* scales) {
  variance += block_index() * rows;
  scales += block_index() * rows;
  double sum = 0;
  for (int64_t r = thread_index(); r < rows; r += kBlock) sum += static_cast<double>(variance[r]);
  const double mean = sum_over<kBlock>(sum) / static_cast<double>(rows), divisor = mean > epsilon ? mean : epsilon;
  for (int64_t r = thread_index(); r < rows; r += kBlock) scales[r] = static_cast<float>(static_cast<double>(variance[r]) / divisor);
}

KERNEL(kBlock)
copy_lines(const float* from, float* to, int64_t count) {
  const int64_t i = int64_t{block_index()} * kBlock + thread_index();
  if (i < count) to[i] = from[i];
}

/// rows: scales of rows, or variances of elements if there are no columns' variances.
struct VariancePlaces {
  const float* at[2];

  DEVICE const float* rows() const { return at[0]; }
  DEVICE const float* columns() const { return at[1]; }
};

/// Calls body(place, count, u) for groups of the thread's elements, `columns` from one to the next: the updates before their size is known.
/// Elements from `count` on are 0.
template <class Body>
DEVICE void each_update(const void* gradient, GradientType type, const float* factor, const MatrixTiles& tiles,
                        const VariancePlaces& variances, float least, const Body& body) {
  const OwnTile tile(tiles);
  if (tile.height == 0) return;
  const bool factored = variances.columns() != nullptr;
  const float of_column = factored ? variances.columns()[tile.matrix * tiles.columns + tile.column] : 1, by = *factor;
  for (int i = 0; i < tile.height; i += kRowsTogether) {
    const int64_t first = tile.at(tiles, i);
    const int count = tile.height - i < kRowsTogether ? tile.height - i : kRowsTogether;
    float g[kRowsTogether] = {}, v[kRowsTogether] = {};
    UNROLL
    for (int j = 0; j < kRowsTogether; ++j) {
      if (j >= count) continue;
      const int64_t at = first + j * tiles.columns;
      g[j] = true_gradient(gradient, type, by, at);
      v[j] = factored ? of_column * variances.rows()[tile.row_at(tiles, i + j)] : variances.rows()[at];
    }
    UNROLL
    for (int j = 0; j < kRowsTogether; ++j) g[j] = g[j] / root(v[j] > least ? v[j] : least);
    body(first, count, g);
  }
}

KERNEL(kBlock)
measure_update(IndexFaults faults, const uint8_t* skip, const void* gradient, GradientType type, const float* factor, MatrixTiles tiles,
               VariancePlaces variances, float least, double* sums) {
  if (is_halted(faults, skip)) return;
  double sum = 0;
  each_update(gradient, type, factor, tiles, variances, least, [&](int64_t, int, const float(&u)[kRowsTogether]) {
    for (const float each : u) sum = with_square(sum, each);
  });
  sum = sum_over<kBlock>(sum);
  if (thread_index() == 0) sums[block_index()] = sum;
}

/// One block. skip: null: none.
KERNEL(kBlock)
add_sums(IndexFaults faults, const uint8_t* skip, const double* sums, int64_t count, double* total) {
  const double sum = skip != nullptr && is_halted(faults, skip) ? 0 : total_of(sums, count);
  if (thread_index() == 0) *total = sum;
}

/// One block. From sums of squares of a parameter with `elements`, and of its update.
KERNEL(kBlock)
set_step(AdafactorAttrs attrs, const double* rates, double elements, const double* parameter_sums, int64_t count_of_parameter,
         const double* update_sums, int64_t count_of_update, AdafactorNumbers* numbers) {
  const double of_parameter = sqrt(total_of(parameter_sums, count_of_parameter) / elements);
  const double of_update = sqrt(total_of(update_sums, count_of_update) / elements) / attrs.clip_threshold;
  if (thread_index() != 0) return;
  const double rate = rates[0] * attrs.lr_scale, most = 1 / sqrt(rates[1]), rho = rate < most ? rate : most;
  const double alpha = (attrs.epsilon2 < of_parameter ? of_parameter : attrs.epsilon2) * rho;
  const double step = alpha / (1 < of_update ? of_update : 1);
  numbers->step = static_cast<float>(step);
  numbers->shrink = static_cast<float>(flushed(numbers->step) > 0 ? rate * attrs.weight_decay / step : 0);
}

KERNEL(kBlock)
update_tiles(IndexFaults faults, const uint8_t* skip, const AdafactorNumbers* numbers, const void* gradient, GradientType type,
             const float* factor, MatrixTiles tiles, VariancePlaces variances, float least, float* parameter, void* copy, DType copy_type) {
  if (is_halted(faults, skip)) return;
  const float step = numbers->step, shrink = numbers->shrink;
  each_update(gradient, type, factor, tiles, variances, least, [&](int64_t first, int count, const float(&u)[kRowsTogether]) {
    float before[kRowsTogether] = {};
    UNROLL
    for (int j = 0; j < kRowsTogether; ++j)
      if (j < count) before[j] = parameter[first + j * tiles.columns];
    UNROLL
    for (int j = 0; j < kRowsTogether; ++j) {
      if (j >= count) continue;
      const int64_t at = first + j * tiles.columns;
      const Vector<float, 1> p = {{decayed(before[j], shrink, step, u[j])}};
      parameter[at] = p.at[0];
      if (copy != nullptr) copy_type == DType::bf16 ? store_narrow<1, Bf16>(copy, at, p) : store_narrow<1, F16>(copy, at, p);
    }
  });
}

}  // namespace st::cuda

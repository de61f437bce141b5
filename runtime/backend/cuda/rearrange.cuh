// Kernels that move elements as bits:
//   pointwise<Same, ..>  y = x, which may be repeated or permuted (pointwise.cuh): broadcast_to, and transposes that keep the last
//   dimension transpose_tiles      the dimensions that are contiguous in x and in y change places, in tiles that a block holds in shared
//   memory move_blocks          blocks of bytes with steps between them: slice, split, concat, pad, store, tensor_part
#pragma once

#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/pointwise.cuh"
#include "backend/cuda/vectors.cuh"
#include "backend/cuda/walk.cuh"

namespace st::cuda {

struct Same {
  template <int kEach, class Bits>
  DEVICE void operator()(Bits (&y)[kEach], const Bits (&x)[kEach]) const {
    for (int i = 0; i < kEach; ++i) y[i] = x[i];
  }
};

constexpr int kTile = 32;                  // rows and columns
constexpr int kTileRows = kBlock / kTile;  // that a block moves at a time

/// Matrices x [columns, rows], with rows contiguous, to y [rows, columns], with columns contiguous.
struct Crossing {
  int64_t rows, columns;
  int64_t x_step, y_step;  // elements from one column of x to the next, and from one row of y to the next
  int64_t row_tiles, column_tiles;
};

/// `others`: the other dimensions, with their strides in x and in y.
template <class Bits>
KERNEL(kBlock)
transpose_tiles(const Bits* x, Bits* y, Crossing crossing, Walk<2> others, int64_t matrices) {
  SHARED(Bits, tile, kTile * (kTile + 1));  // a row of 33, so that neither side's accesses share a bank
  const int64_t tiles = crossing.row_tiles * crossing.column_tiles, matrix = block_index() / tiles, at = block_index() - matrix * tiles;
  const int64_t first_row = at / crossing.column_tiles * kTile, first_column = at % crossing.column_tiles * kTile;
  const InputPlaces<2> places = places_of(others, matrix, matrices);
  const int along = thread_index() % kTile, across = thread_index() / kTile;
  for (int i = across; i < kTile; i += kTileRows)
    if (first_row + along < crossing.rows && first_column + i < crossing.columns)
      tile[i * (kTile + 1) + along] = x[places.at[0] + first_row + along + (first_column + i) * crossing.x_step];
  sync_block();
  for (int i = across; i < kTile; i += kTileRows)
    if (first_row + i < crossing.rows && first_column + along < crossing.columns)
      y[places.at[1] + (first_row + i) * crossing.y_step + first_column + along] = tile[along * (kTile + 1) + i];
}

/// In words.
struct BlockSteps {
  int64_t block;     // of one block
  int64_t from, to;  // from one block to the next
};

struct alignas(16) SixteenBytes {
  uint64_t at[2];
};

/// A thread moves a word; without `from` it writes zeros.
template <class Word>
KERNEL(kBlock)
move_blocks(const Word* from, Word* to, BlockSteps steps, int64_t words) {
  const int64_t word = int64_t{block_index()} * kBlock + thread_index();
  if (word >= words) return;
  const int64_t block = word / steps.block, at = word - block * steps.block;
  const Word moved = from == nullptr ? Word{} : load_vector<Word>(from + block * steps.from + at);
  store_vector(to + block * steps.to + at, moved);
}

}  // namespace st::cuda

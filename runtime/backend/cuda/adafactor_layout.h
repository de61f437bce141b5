// How Adafactor cuts a parameter, or a rank's piece of one, and its workspace.
#pragma once

#include <cstdint>

#include "backend/cuda/square_chunks.h"
#include "base/shape.h"

namespace st::cuda {

constexpr int kTileHeight = 32, kTileWidth = 256;  // rows and columns of a block of threads, a column each

/// Matrices one after the other, in tiles; a parameter of fewer than two dimensions is one row.
struct MatrixTiles {
  int64_t rows, columns, matrices;
  int64_t down, across;  // tiles of a matrix

  explicit MatrixTiles(const Shape& shape)
      : rows(shape.rank() > 1 ? shape[shape.rank() - 2] : 1),
        columns(shape.rank() > 0 ? shape.last() : 1),
        matrices(rows * columns == 0 ? 0 : shape.elements() / (rows * columns)),
        down((rows + kTileHeight - 1) / kTileHeight),
        across((columns + kTileWidth - 1) / kTileWidth) {}

  int64_t tiles() const { return matrices * down * across; }
  int64_t elements() const { return matrices * rows * columns; }
};

/// Bytes from the start: the numbers of a step; sums in fp64 of squares: of the gradient for each row [matrices][across][rows] and column
/// [matrices][down][columns], of the update for each tile, of the parameter for each chunk; then in fp32 each row's scale, that of all rows
/// of the whole if the parameter is a piece, and of the piece those of its own rows or its columns' variances.
struct AdafactorLayout {
  static constexpr int64_t kNumbers = 16;

  MatrixTiles tiles;
  bool factored;
  int64_t whole_rows, own_lines;  // own_lines: of the piece; 0: no piece

  explicit AdafactorLayout(const Shape& parameter)
      : tiles(parameter), factored(parameter.rank() > 1), whole_rows(tiles.matrices * tiles.rows), own_lines(0) {}
  AdafactorLayout(const Shape& piece, int64_t rows_of_whole) : AdafactorLayout(piece) {
    whole_rows = rows_of_whole;
    own_lines = tiles.rows > tiles.columns ? tiles.rows : tiles.columns;
  }

  int64_t row_sums() const { return kNumbers; }
  int64_t column_sums() const { return row_sums() + (factored ? tiles.matrices * tiles.across * tiles.rows * 8 : 0); }
  int64_t update_sums() const { return column_sums() + (factored ? tiles.matrices * tiles.down * tiles.columns * 8 : 0); }
  int64_t parameter_sums() const { return update_sums() + tiles.tiles() * 8; }
  int64_t scales() const { return parameter_sums() + square_chunks(tiles.elements()) * 8; }
  int64_t own() const { return scales() + (factored ? whole_rows * 4 : 0); }
  int64_t bytes() const { return own() + (factored ? own_lines * 4 : 0); }
};

}  // namespace st::cuda

// Where a rank's piece of a parameter lies in the whole, for kernels that update pieces (ops.def): the same as ir/parameter_piece.h,
// without an allocation.
#pragma once

#include <cstdint>
#include <span>

#include "base/shape.h"
#include "ir/attrs.h"

namespace st {

struct PieceParts {
  /// `piece`: its shape, a vector or a matrix; `attrs`: of an op that updates a piece.
  PieceParts(const Shape& piece, const Attrs& attrs)
      : segments(attrs.ints("segments")),
        rank(attrs.integer("rank")),
        ranks(attrs.integer("ranks")),
        dimension(static_cast<int32_t>(attrs.integer("dimension"))),
        rows(piece.rank() < 2 ? 1 : piece[0]),
        columns(piece.rank() < 2 ? piece[0] : piece[1]),
        cuts_rows(piece.rank() == 2 && dimension == 0) {}

  int64_t whole_rows() const { return cuts_rows ? rows * ranks : rows; }
  int64_t whole_columns() const { return cuts_rows ? columns : columns * ranks; }

  /// take(first in the whole, first in the piece, how many) for each part of rows or columns that are contiguous in both.
  template <class Take>
  void each_part(int64_t of_rank, const Take& take) const {
    int64_t in_whole = 0, in_piece = 0;
    for (const int64_t segment : segments) {
      const int64_t part = segment / ranks;
      take(in_whole + of_rank * part, in_piece, part);
      in_whole += segment;
      in_piece += part;
    }
  }
  /// The same for runs of elements, of the whole flattened.
  template <class Take>
  void each_run(int64_t of_rank, const Take& take) const {
    if (cuts_rows)
      return each_part(of_rank, [&](int64_t in_whole, int64_t in_piece, int64_t count) {
        take(in_whole * columns, in_piece * columns, count * columns);
      });
    for (int64_t row = 0; row < rows; ++row)
      each_part(of_rank, [&](int64_t in_whole, int64_t in_piece, int64_t count) {
        take(row * columns * ranks + in_whole, row * columns + in_piece, count);
      });
  }

  std::span<const int64_t> segments;
  int64_t rank, ranks;
  int32_t dimension;
  int64_t rows, columns;  // of the piece; a vector is one row
  bool cuts_rows;
};

}  // namespace st

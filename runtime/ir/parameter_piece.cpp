#include "ir/parameter_piece.h"

#include <algorithm>

namespace st {

void ParameterPiece::each_run(int64_t first, int64_t elements, const Run& run) const {
  if (!is_cut()) return run(first, first, elements);
  const int64_t own_row = whole.elements(dimension, whole.rank()) / ranks, end = first + elements;
  if (own_row == 0 || elements == 0) return;
  for (int64_t row = first / own_row; row * own_row < end; ++row)
    each_in_row(row, [&](int64_t in_whole, int64_t in_piece, int64_t count) {
      const int64_t from = std::max(in_piece, first), to = std::min(in_piece + count, end);
      if (from < to) run(in_whole + (from - in_piece), from, to - from);
    });
}

void ParameterPiece::each_run_between(int64_t from, int64_t to, const Run& run) const {
  if (!is_cut()) return run(from, from, to - from);
  const int64_t size = whole.elements(dimension, whole.rank());
  for (int64_t row = size == 0 ? 0 : from / size; row * size < to && size > 0; ++row) each_in_row(row, run);
}

/// A row: an index of the dimensions before the one that is cut.
void ParameterPiece::each_in_row(int64_t row, const Run& run) const {
  const int64_t inner = whole.elements(dimension + 1, whole.rank()), size = whole[dimension] * inner;
  int64_t in_whole = row * size, in_piece = row * (size / ranks);
  for (const int64_t segment : segments) {
    const int64_t part = segment / ranks * inner;
    run(in_whole + rank * part, in_piece, part);
    in_whole += segment * inner;
    in_piece += part;
  }
}

}  // namespace st

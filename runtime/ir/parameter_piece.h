// A rank's piece of a parameter under tensor parallelism, and where its elements are in the whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/shape.h"

namespace st {

/// A slice along one dimension. The dimension consists of segments (the columns of q, k and v in one weight; usually one), each of which is
/// cut into `ranks` equal parts; the piece has the part of this rank of each segment, in order.
struct ParameterPiece {
  Shape whole = {};
  int32_t dimension = -1;  // -1: not cut, the piece is all
  std::vector<int64_t> segments = {};
  int32_t rank = 0, ranks = 1;

  bool is_cut() const { return dimension >= 0; }
  /// Calls `run` for each run of elements that are contiguous in both: elements [first, first + elements) of the piece, in order.
  using Run = std::function<void(int64_t in_whole, int64_t in_piece, int64_t elements)>;
  void each_run(int64_t first, int64_t elements, const Run& run) const;
  /// The same for all runs of the rows that have elements [from, to) of the whole; some may lie outside of that range.
  void each_run_between(int64_t from, int64_t to, const Run& run) const;
  bool operator==(const ParameterPiece&) const = default;

 private:
  void each_in_row(int64_t row, const Run& run) const;
};

/// Elements [first, first + elements) of a piece of a parameter, flattened: what a rank has of it.
struct PieceRange {
  int64_t first = 0, elements = 0;
  ParameterPiece piece = {};  // not cut: the range is of the whole

  /// Calls run(first element in the whole, the same in this range, elements) for each part of the range that is contiguous in the whole, in
  /// order.
  template <class Run>
  void each_run(const Run& run) const {
    if (elements == 0) return;
    if (!piece.is_cut()) return run(first, int64_t{0}, elements);
    piece.each_run(first, elements, [&](int64_t in_whole, int64_t in_piece, int64_t count) { run(in_whole, in_piece - first, count); });
  }
  /// The same for what of the whole's elements [from, to) is in this range.
  template <class Run>
  void each_run_between(int64_t from, int64_t to, const Run& run) const {
    const auto part = [&](int64_t in_whole, int64_t in_piece, int64_t count) {
      const int64_t begin = std::max({in_whole, from, in_whole + first - in_piece});
      const int64_t end = std::min({in_whole + count, to, in_whole + first + elements - in_piece});
      if (begin < end) run(begin, in_piece + (begin - in_whole) - first, end - begin);
    };
    if (!piece.is_cut()) return part(first, first, elements);
    piece.each_run_between(from, to, part);
  }
  bool operator==(const PieceRange&) const = default;
};

}  // namespace st

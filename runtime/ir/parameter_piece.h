// A rank's piece of a parameter under tensor parallelism, and where its elements are in the whole.
#pragma once

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

}  // namespace st

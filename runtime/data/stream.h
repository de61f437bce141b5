// The order of rows in training: endless, the permutations of (seed, 0), (seed, 1), ... concatenated. An item's row depends only on its
// index, so the position is one number (the count of items taken), a rank finds its items without the others, and resuming is free.
#pragma once

#include <cstdint>
#include <span>

#include "base/philox.h"

namespace st {

/// A permutation of [0, n), computed per element without memory: a Feistel network over the next power of two. Results outside [0, n) are
/// sent through again until they fall inside (cycle walking: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). A
/// shuffled table would cost 8 bytes a row on each rank, and time at each epoch and each resume.
class Permutation {
 public:
  Permutation(int64_t n, uint64_t key);  // n >= 1
  int64_t operator()(int64_t i) const;

 private:
  uint64_t n_;
  uint32_t high_bits_, low_bits_;
  Philox random_;
};

class DataStream {
 public:
  /// Throws invalid_argument if `rows` is below 1.
  DataStream(int64_t rows, uint64_t seed);

  int64_t rows() const { return rows_; }
  /// The row of item `index` >= 0; its epoch is index / rows.
  int64_t operator[](int64_t index) const;
  /// The rows of the items [first, first + out.size()).
  void fill(int64_t first, std::span<int64_t> out) const;

 private:
  int64_t rows_;
  uint64_t seed_;
};

/// How steps cut the stream. A step has `per_step` (K) micro-batches of `rows` (b) over all data ranks; micro-batch k takes the k-th slice.
/// Data rank r of D computes k = round * D + r, so the items of a step do not depend on D.
struct MicroBatches {
  int64_t rows = 1, per_step = 1;
  int64_t ranks = 1, rank = 0;

  int64_t items_per_step() const { return rows * per_step; }
  /// Micro-batches of a step that this rank computes.
  int64_t own() const { return rank < per_step ? (per_step - rank - 1) / ranks + 1 : 0; }
  int64_t own(int64_t round) const { return round * ranks + rank; }
  /// First item of micro-batch k in the step that starts at `cursor`.
  int64_t first_item(int64_t cursor, int64_t k) const { return cursor + k * rows; }
};

}  // namespace st

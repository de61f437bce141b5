// embedding: y[i] = weight[tokens[i]]; a thread moves a word of a row.
//
// embedding_backward: dweight[v] is the sum of the rows dy[i] with tokens[i] = v, in token order, with the cpu's bits, without atomics.
//   sort_tiles   the keys (v, i) of 256 tokens in order; keys differ, so any sort gives the same order
//   merge_runs   neighbouring sorted runs of `width` keys become one: a key's place is its rank in both
//   find_rows    the first key of each row of the weight
//   sum_rows     a thread has neighbouring columns of a row of dweight, and adds the rows of dy in the order of the keys; rows without a
//                token become 0
#pragma once

#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/index_faults.cuh"
#include "backend/cuda/indices.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

/// A weight with the rows from `first` on of `classes`.
struct WeightRows {
  int64_t first, rows, classes;

  /// The row of a token; `rows`: that of another rank, or reported as outside the vocabulary.
  DEVICE int64_t row_of(const IndexFaults& faults, const Indices& tokens, int64_t at) const {
    const int64_t token = tokens[at], row = token - first;
    if (token < 0 || token >= classes) report(faults, at, token);
    return token < 0 || token >= classes || row < 0 || row >= rows ? rows : row;
  }
};

/// A row has `words` words. If it has none, tokens are checked all the same, by a thread each.
template <class Word>
KERNEL(kBlock)
copy_rows(IndexFaults faults, WeightRows weight_rows, const Word* weight, Indices tokens, Word* y, int64_t words, int64_t count) {
  const int64_t per_row = words == 0 ? 1 : words, at = int64_t{block_index()} * kBlock + thread_index();
  const int64_t token = at / per_row, word = at - token * per_row;
  if (token >= count) return;
  const int64_t row = weight_rows.row_of(faults, tokens, token);
  if (words == 0) return;
  store_vector(y + at, row == weight_rows.rows ? Word{} : load_vector<Word>(weight + row * words + word));
}

KERNEL(kBlock)
sort_tiles(IndexFaults faults, WeightRows weight_rows, Indices tokens, int64_t count, uint64_t* keys) {
  SHARED(uint64_t, tile, kBlock);
  const int64_t first = int64_t{block_index()} * kBlock, left = count - first;
  const int filled = static_cast<int>(left < kBlock ? left : kBlock);
  uint64_t own = 0;
  if (thread_index() < filled) {
    const int64_t at = first + thread_index();
    own = static_cast<uint64_t>(weight_rows.row_of(faults, tokens, at)) << 32 | static_cast<uint64_t>(at);
    tile[thread_index()] = own;
  }
  sync_block();
  if (thread_index() >= filled) return;
  int smaller = 0;
  for (int i = 0; i < filled; ++i) smaller += tile[i] < own ? 1 : 0;
  keys[first + smaller] = own;
}

/// How many of `count` keys in order are smaller.
DEVICE int64_t count_smaller(const uint64_t* keys, int64_t count, uint64_t than) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (keys[middle] < than)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

KERNEL(kBlock)
merge_runs(const uint64_t* from, uint64_t* to, int64_t width, int64_t count) {
  const int64_t at = int64_t{block_index()} * kBlock + thread_index();
  if (at >= count) return;
  const int64_t run = at / width, other = (run ^ 1) * width, left = count - other;
  const int64_t smaller = left <= 0 ? 0 : count_smaller(from + other, left < width ? left : width, from[at]);
  to[run / 2 * 2 * width + (at - run * width) + smaller] = from[at];
}

KERNEL(kBlock)
find_rows(const uint64_t* keys, int64_t count, uint32_t* first_keys, int64_t rows) {
  const int64_t row = int64_t{block_index()} * kBlock + thread_index();
  if (row <= rows) first_keys[row] = static_cast<uint32_t>(count_smaller(keys, count, static_cast<uint64_t>(row) << 32));
}

constexpr int kRowsAhead = 4;  // rows of dy that a thread loads before it adds them

template <int kEach, class T>
KERNEL(kBlock)
sum_rows(const uint64_t* keys, const uint32_t* first_keys, const T* dy, T* dweight, int64_t rows, int64_t columns) {
  using C = Compute<T>;
  const int64_t groups = columns / kEach, at = int64_t{block_index()} * kBlock + thread_index(), row = at / groups;
  if (row >= rows) return;
  const int64_t column = (at - row * groups) * kEach;
  C sums[kEach + kEach % 2] = {};
  const uint32_t end = first_keys[row + 1];
  for (uint32_t key = first_keys[row]; key < end; key += kRowsAhead) {
    Vector<T, kEach> ahead[kRowsAhead];
    for (uint32_t k = 0; k < kRowsAhead; ++k)
      if (key + k < end) ahead[k] = load_vector<Vector<T, kEach>>(dy + static_cast<uint32_t>(keys[key + k]) * columns + column);
    for (uint32_t k = 0; k < kRowsAhead; ++k)
      if (key + k < end)
        for (int i = 0; i < kEach; ++i) sums[i] = plus(sums[i], widen(ahead[k].at[i]));
  }
  Vector<T, kEach + kEach % 2> made;
  for (int i = 0; i < kEach; i += 2) narrow_pair(made.at + i, sums[i], sums[i + 1]);
  Vector<T, kEach> whole;
  for (int i = 0; i < kEach; ++i) whole.at[i] = made.at[i];
  store_vector(dweight + at * kEach, whole);
}

}  // namespace st::cuda

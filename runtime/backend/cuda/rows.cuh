// Rows of elements that lie side by side, each read by a group of threads: the 32 of a warp for short rows, a block for long ones. Elements
// are read in vectors of 16 bytes where they are aligned; the order of sums does not depend on that.
#pragma once

#include <cmath>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/block_reduce.cuh"
#include "backend/cuda/doubles.cuh"
#include "backend/cuda/fused.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

/// Elements of a vector of 16 bytes.
template <class T>
constexpr int kOfVector = static_cast<int>(16 / sizeof(T));

DEVICE bool is_aligned(const void* place, int64_t bytes) { return reinterpret_cast<uintptr_t>(place) % static_cast<uintptr_t>(bytes) == 0; }
DEVICE bool is_finite(float x) { return fabsf(x) < INFINITY; }
DEVICE bool is_finite(double x) { return fabs(x) < INFINITY; }

/// The first `count` of kEach elements; the others are zeros.
template <int kEach, class T>
DEVICE Vector<T, kEach> load_some(const T* from, int count) {
  if (count == kEach && is_aligned(from, alignof(Vector<T, kEach>))) return load_vector<Vector<T, kEach>>(from);
  Vector<T, kEach> some{};
  for (int i = 0; i < kEach; ++i)
    if (i < count) some.at[i] = from[i];
  return some;
}

template <int kEach, class T>
DEVICE void widen_all(Compute<T> (&to)[kEach], const Vector<T, kEach>& from) {
  for (int i = 0; i < kEach; ++i) to[i] = flushed(widen(from.at[i]));
}
template <int kEach, class T>
DEVICE void read_some(Compute<T> (&to)[kEach], const T* from, int count) {
  widen_all(to, load_some<kEach>(from, count));
}

/// Rounds the first `count` elements to T and stores them. kEach is even.
template <int kEach, class T>
DEVICE void store_some(T* to, const Compute<T> (&from)[kEach], int count) {
  Vector<T, kEach> made;
  for (int i = 0; i < kEach; i += 2) narrow_pair(made.at + i, flushed(from[i]), flushed(from[i + 1]));
  if (count == kEach && is_aligned(to, alignof(Vector<T, kEach>))) return store_vector(to, made);
  for (int i = 0; i < kEach; ++i)
    if (i < count) to[i] = made.at[i];
}
template <class T>
DEVICE void store_one(T* to, Compute<T> value) {
  const Compute<T> pair[2] = {value, 0};
  store_some(to, pair, 1);
}

/// The sum of the first `count` elements, which fp32 need not represent.
template <int kEach, class C>
DEVICE double sum_of_some(const C (&x)[kEach], int count) {
  C sum = 0;
  for (int i = 0; i < kEach; ++i)
    if (i < count) sum += x[i];
  if (is_finite(sum)) return static_cast<double>(sum);
  double wide = 0;
  for (int i = 0; i < kEach; ++i)
    if (i < count) wide += static_cast<double>(x[i]);
  return wide;
}

/// The threads that read a row: a warp or a block, the same in the whole grid.
struct Group {
  int threads;  // kLanes or kBlock

  /// Number of this group in the grid, of this thread in its group, and the groups of a block.
  DEVICE int64_t index() const { return threads == kLanes ? int64_t{block_index()} * of_block() + in_block() : block_index(); }
  DEVICE int in_block() const { return threads == kLanes ? thread_index() / kLanes : 0; }
  DEVICE int thread() const { return threads == kLanes ? thread_index() % kLanes : thread_index(); }
  DEVICE int of_block() const { return threads == kLanes ? kBlock / kLanes : 1; }

  /// All threads of the group come to the same call, if it is a block's in the same place.
  template <class T, int kCount, class Combine>
  DEVICE void reduce(T (&values)[kCount], const Combine& combine) const {
    if (threads == kLanes) return reduce_over_warp(values, combine);
    reduce_over<kBlock>(values, combine);
  }
  template <class T, class Combine>
  DEVICE T reduced(T value, const Combine& combine) const {
    T values[1] = {value};
    reduce(values, combine);
    return values[0];
  }
};

constexpr int64_t kLongRow = 4096;  // bytes: longer rows are read by blocks
inline Group group_for(int64_t row_bytes) { return {row_bytes <= kLongRow ? kLanes : kBlock}; }
inline int64_t blocks_for_rows(int64_t rows, Group group) {
  const int64_t of_block = kBlock / group.threads;
  return (rows + of_block - 1) / of_block;
}

/// Rows of `size` elements of kInputs tensors, at the same place in each. The first kHeld vectors of a thread, of kOfPart
/// elements, are read once, into shared memory that no other thread uses; those after them are read again by each pass.
template <class T, int kHeld, int kInputs = 1, int kOfPart = kOfVector<T>>
class Rows {
 public:
  using C = Compute<T>;
  static constexpr int kEach = kOfPart;
  using Part = Vector<T, kEach>;
  static constexpr int kShared = kHeld * kInputs * kBlock;  // parts of a block

  /// shared: kShared parts of the block.
  DEVICE Rows(Group own_group, const Pointers<const T, kInputs>& rows, int64_t row_size, Part* shared)
      : group(own_group), size(row_size), rows_(rows), held_(shared + thread_index()) {
    bool is_whole = sizeof(T) < 8 && size % kEach == 0;  // fp64 has no registers to spare
    for (const T* const row : rows.at) is_whole = is_whole && is_aligned(row, alignof(Part));
    if (!is_whole) {
      for (int index = 0; index < kHeld && place(index) < size; ++index)
        for (int input = 0; input < kInputs; ++input)
          held_[(index * kInputs + input) * kBlock] = load_some<kEach>(rows.at[input] + place(index), count(place(index)));
      return;
    }
    constexpr int kAtOnce = 2;  // loads that do not wait for each other
    for (int begin = 0; begin < kHeld; begin += kAtOnce) {
      Part parts[kAtOnce][kInputs];
      for (int i = 0; i < kAtOnce; ++i)
        for (int input = 0; input < kInputs; ++input)
          if (begin + i < kHeld && place(begin + i) < size) parts[i][input] = load_vector<Part>(rows.at[input] + place(begin + i));
      for (int i = 0; i < kAtOnce; ++i)
        for (int input = 0; input < kInputs; ++input)
          if (begin + i < kHeld && place(begin + i) < size) held_[((begin + i) * kInputs + input) * kBlock] = parts[i][input];
    }
  }

  /// Calls body(place, x, count) for each vector of this thread, in order: x[input] are the kEach elements from `place` on, of which
  /// `count` are in the row; the others are zeros.
  template <class Body>
  DEVICE void each(const Body& body) const {
    for (int64_t index = 0, at = place(0); at < size; ++index, at = place(index)) {
      C x[kInputs][kEach];
      for (int input = 0; input < kInputs; ++input)
        widen_all(x[input], index < kHeld ? held_[(index * kInputs + input) * kBlock] : load_some<kEach>(rows_.at[input] + at, count(at)));
      body(at, x, count(at));
    }
  }

  const Group group;
  const int64_t size;

 private:
  DEVICE int64_t place(int64_t index) const { return (index * group.threads + group.thread()) * kEach; }
  DEVICE int count(int64_t at) const { return size - at < kEach ? static_cast<int>(size - at) : kEach; }

  Pointers<const T, kInputs> rows_;
  Part* held_;
};

}  // namespace st::cuda

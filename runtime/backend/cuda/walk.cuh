// Where a kernel finds the elements of inputs that broadcast to its output.
#pragma once

#include <array>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/vectors.cuh"
#include "base/shape.h"

namespace st::cuda {

/// The output's dimensions; neighbours that every input crosses alike are one.
template <int kInputs>
struct Walk {
  int rank = 0;  // 0: all inputs have the output's shape
  int64_t size[kMaxDims] = {};
  int64_t stride[kInputs][kMaxDims] = {};  // elements; 0: the input is repeated

  DEVICE int64_t last_stride(int input) const { return rank == 0 ? 1 : stride[input][rank - 1]; }
};

/// The dimension `back` from the last one; 1 if there is none.
inline int64_t dimension(const Shape& shape, int32_t back) { return back < shape.rank() ? shape[shape.rank() - 1 - back] : 1; }

/// The walk over `out` to which `in` broadcast. From the last dimension outwards; one joins that inside it if every input continues where
/// that one ended.
template <int kInputs>
Walk<kInputs> walk_of(const Shape& out, const std::array<const Shape*, kInputs>& in) {
  Walk<kInputs> walk, reversed;
  bool is_alike = true;
  for (const Shape* const x : in) is_alike = is_alike && *x == out;
  if (is_alike) return walk;
  int count = 0;
  std::array<int64_t, kInputs> step;
  step.fill(1);
  for (int32_t back = 0; back < out.rank(); ++back) {
    const int64_t size = dimension(out, back);
    std::array<int64_t, kInputs> stride;
    bool joins = count > 0;
    for (size_t k = 0; k < kInputs; ++k) {
      const int64_t own = dimension(*in[k], back);
      stride[k] = own == 1 ? 0 : step[k];
      step[k] *= own;
      if (joins) joins = stride[k] == reversed.stride[k][count - 1] * reversed.size[count - 1];
    }
    if (size == 1) continue;
    if (joins) {
      reversed.size[count - 1] *= size;
      continue;
    }
    for (size_t k = 0; k < kInputs; ++k) reversed.stride[k][count] = stride[k];
    reversed.size[count++] = size;
  }
  walk.rank = count == 0 ? 1 : count;
  walk.size[0] = 1;  // of one element
  for (int d = 0; d < count; ++d) {
    walk.size[d] = reversed.size[count - 1 - d];
    for (int k = 0; k < kInputs; ++k) walk.stride[k][d] = reversed.stride[k][count - 1 - d];
  }
  return walk;
}

/// Where the inputs' elements for an element of the output are.
template <int kInputs>
struct InputPlaces {
  int64_t at[kInputs];
  int64_t left;  // elements of the output from this one on in which each input advances by its last stride
};

template <int kInputs>
DEVICE InputPlaces<kInputs> places_of(const Walk<kInputs>& walk, int64_t element, int64_t elements) {
  InputPlaces<kInputs> places;
  if (walk.rank == 0) {
    for (int input = 0; input < kInputs; ++input) places.at[input] = element;
    places.left = elements - element;
    return places;
  }
  int64_t rest = element;
  for (int input = 0; input < kInputs; ++input) places.at[input] = 0;
  for (int d = walk.rank - 1; d >= 0; --d) {
    const int64_t outer = rest / walk.size[d], index = rest - outer * walk.size[d];
    if (d == walk.rank - 1) places.left = walk.size[d] - index;
    for (int input = 0; input < kInputs; ++input) places.at[input] += index * walk.stride[input][d];
    rest = outer;
  }
  return places;
}

/// kEach elements of an input from `at` on, `step` apart.
template <int kEach, class X>
DEVICE Vector<X, kEach> read_run(const X* x, int64_t at, int64_t step) {
  if (step == 1 && at % kEach == 0) return load_vector<Vector<X, kEach>>(x + at);
  Vector<X, kEach> read;
  for (int i = 0; i < kEach; ++i) read.at[i] = x[at + i * step];
  return read;
}

}  // namespace st::cuda

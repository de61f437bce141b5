// Where a kernel finds the elements of inputs that broadcast to its output.
#pragma once

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

// Walks an output to which inputs broadcast. Dimensions that all operands cross alike are merged; the rest is cut into segments along the
// last one, in which each input either advances with the output or stays.
#pragma once

#include <algorithm>
#include <array>

#include "base/shape.h"

namespace st::cpu {

template <size_t N>
struct Segments {
  int rank = 1;
  std::array<int64_t, kMaxDims> size{1};
  std::array<std::array<int64_t, kMaxDims>, N> stride{};  // of each input, in elements; 0 where it is broadcast
  int64_t elements = 1;

  Segments(const Shape& out, const std::array<const Shape*, N>& in) {
    elements = out.elements();
    std::array<int64_t, kMaxDims> sizes{};
    std::array<std::array<int64_t, kMaxDims>, N> strides{};
    int count = 0;
    // From the last dimension outwards; a dimension merges with the inner one if every input continues where the inner one ended.
    std::array<int64_t, N> step;
    step.fill(1);
    for (int32_t back = 1; back <= out.rank(); ++back) {
      const int64_t n = out[out.rank() - back];
      std::array<int64_t, N> at{};
      for (size_t k = 0; k < N; ++k) {
        const Shape& shape = *in[k];
        const int64_t m = back <= shape.rank() ? shape[shape.rank() - back] : 1;
        at[k] = m == 1 ? 0 : step[k];
        step[k] *= m;
      }
      if (n == 1) continue;
      bool joins = count > 0;
      for (size_t k = 0; k < N && joins; ++k) {
        const size_t inner = static_cast<size_t>(count - 1);
        joins = at[k] == strides[k][inner] * sizes[inner] && (at[k] != 0 || strides[k][inner] == 0);
      }
      if (joins) {
        sizes[static_cast<size_t>(count - 1)] *= n;
      } else {
        for (size_t k = 0; k < N; ++k) strides[k][static_cast<size_t>(count)] = at[k];
        sizes[static_cast<size_t>(count++)] = n;
      }
    }
    if (count == 0) {  // one element
      for (size_t k = 0; k < N; ++k) stride[k][0] = 1;
      return;
    }
    rank = count;
    for (int d = 0; d < count; ++d) {
      size[static_cast<size_t>(d)] = sizes[static_cast<size_t>(count - 1 - d)];
      for (size_t k = 0; k < N; ++k) stride[k][static_cast<size_t>(d)] = strides[k][static_cast<size_t>(count - 1 - d)];
    }
  }

  /// Calls body(out offset, input offsets, length) for the segments of output elements [begin, end).
  template <class Body>
  void walk(int64_t begin, int64_t end, const Body& body) const {
    const size_t last = static_cast<size_t>(rank - 1);
    std::array<int64_t, kMaxDims> place{};
    int64_t rest = begin;
    for (size_t d = last + 1; d-- > 0;) {
      place[d] = rest % size[d];
      rest /= size[d];
    }
    std::array<int64_t, N> offset{};
    for (size_t k = 0; k < N; ++k) {
      for (size_t d = 0; d <= last; ++d) offset[k] += place[d] * stride[k][d];
    }
    for (int64_t out = begin; out < end;) {
      const int64_t length = std::min(end - out, size[last] - place[last]);
      body(out, offset, length);
      out += length;
      if (out >= end) break;
      for (size_t k = 0; k < N; ++k) offset[k] -= place[last] * stride[k][last];
      place[last] = 0;
      for (size_t d = last; d-- > 0;) {
        for (size_t k = 0; k < N; ++k) offset[k] += stride[k][d];
        if (++place[d] < size[d]) break;
        for (size_t k = 0; k < N; ++k) offset[k] -= size[d] * stride[k][d];
        place[d] = 0;
      }
    }
  }

  int64_t inner_size() const { return size[static_cast<size_t>(rank - 1)]; }
  int64_t inner_stride(size_t input) const { return stride[input][static_cast<size_t>(rank - 1)]; }
};

}  // namespace st::cpu

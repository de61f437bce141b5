// Rotates the pair (d, d + D/2) of x [B, T, H, D] by (t + offset) base^(-2d/D). A first kernel writes a table [T][cos, sin][D/2], each
// entry from its own angle in fp64; in the second a thread rotates kEach neighbouring pairs, and reads them before it writes.
#pragma once

#include <cmath>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

struct Rotation {
  double base, direction, offset;
  int64_t half;  // D / 2
};

template <class C>
KERNEL(kBlock)
make_rope_table(Rotation rotation, C* table, int64_t pairs) {
  const int64_t at = int64_t{block_index()} * kBlock + thread_index();
  if (at >= pairs) return;
  const int64_t t = at / rotation.half, d = at - t * rotation.half;
  const double speed = pow(rotation.base, -static_cast<double>(d) / static_cast<double>(rotation.half));
  const double angle = rotation.direction * (static_cast<double>(t) + rotation.offset) * speed;
  C* const row = table + t * 2 * rotation.half + d;
  row[0] = static_cast<C>(cos(angle));
  row[rotation.half] = static_cast<C>(sin(angle));
}

/// kEach pairs whose first elements are at x and whose angles are at `angles`.
template <int kEach, class T, class C>
DEVICE void rotate_pairs(const C* angles, const T* x, T* y, int64_t half) {
  const auto cosines = load_vector<Vector<C, kEach>>(angles), sines = load_vector<Vector<C, kEach>>(angles + half);
  const auto a = load_vector<Vector<T, kEach>>(x), b = load_vector<Vector<T, kEach>>(x + half);
  C first[kEach + 1], second[kEach + 1];
  for (int i = 0; i < kEach; ++i) {
    const C u = widen(a.at[i]), v = widen(b.at[i]), c = cosines.at[i], s = sines.at[i];
    first[i] = plus(times(u, c), -times(v, s));
    second[i] = plus(times(v, c), times(u, s));
  }
  Vector<T, kEach + kEach % 2> y_first, y_second;
  first[kEach] = second[kEach] = C(0);
  for (int i = 0; i < kEach; i += 2) {
    narrow_pair(y_first.at + i, first[i], first[i + 1]);
    narrow_pair(y_second.at + i, second[i], second[i + 1]);
  }
  if constexpr (kEach == 1) {
    y[0] = y_first.at[0];
    y[half] = y_second.at[0];
  } else {
    store_vector(y, y_first);
    store_vector(y + half, y_second);
  }
}

constexpr int kRopePairs = 4;  // of a thread

/// heads: those of a t, one after the other; groups: of kRopePairs pairs, in all heads.
template <class T>
KERNEL(kBlock)
rotate_elements(const Compute<T>* table, const T* x, T* y, int64_t half, int64_t heads, int64_t steps, int64_t groups) {
  const int64_t group = int64_t{block_index()} * kBlock + thread_index();
  if (group >= groups) return;
  const int64_t per_head = (half + kRopePairs - 1) / kRopePairs, head = group / per_head, first = (group - head * per_head) * kRopePairs;
  const Compute<T>* const angles = table + head / heads % steps * 2 * half + first;
  const int64_t at = head * 2 * half + first;
  if (half % kRopePairs == 0) return rotate_pairs<kRopePairs>(angles, x + at, y + at, half);
  for (int64_t i = 0; i < kRopePairs && first + i < half; ++i) rotate_pairs<1>(angles + i, x + at + i, y + at + i, half);
}

}  // namespace st::cuda

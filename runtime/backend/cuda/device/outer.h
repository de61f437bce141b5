// The innermost step of a product without tensor cores, which a device that is not there computes in vectors.
#pragma once

#include <device/threads.h>

namespace st::cuda {

/// sums[i][j] = a[i] b[j] + sums[i][j], rounded once.
template <int kRows, int kColumns>
DEVICE void add_outer_product(float (&sums)[kRows][kColumns], const float (&a)[kRows], const float (&b)[kColumns]) {
  UNROLL
  for (int i = 0; i < kRows; ++i) {
    UNROLL
    for (int j = 0; j < kColumns; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
  }
}
template <int kRows, int kColumns>
DEVICE void add_outer_product(double (&sums)[kRows][kColumns], const double (&a)[kRows], const double (&b)[kColumns]) {
  UNROLL
  for (int i = 0; i < kRows; ++i) {
    UNROLL
    for (int j = 0; j < kColumns; ++j) sums[i][j] = fma(a[i], b[j], sums[i][j]);
  }
}

}  // namespace st::cuda

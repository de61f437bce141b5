// Shared by tests of products: sizes, and errors against sums in fp64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/text.h"
#include "float_format.h"

namespace st {

/// The distance of numbers next to x.
inline double unit_at(double x, DType dtype) { return std::ldexp(1.0, std::ilogb(x == 0 ? 1e-30 : x) - format_of(dtype).digits); }

struct Sizes {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
};

/// That of each element against fp64 is at most 1.5 times the cpu's largest and a unit in the last place. Matrices have a dtype and at(i).
template <class Matrix>
void expect_errors_of_the_cpu(const Sizes& sizes, const Matrix& a, const Matrix& b, const Matrix& made, const Matrix& by_cpu) {
  const auto& [m, n, k, transpose_a, transpose_b] = sizes;
  std::vector<double> wanted;
  double of_cpu = 0;
  for (int64_t i = 0; i < m * n; ++i) {
    double sum = 0;
    for (int64_t e = 0; e < k; ++e)
      sum += a.at(transpose_a ? e * m + i / n : i / n * k + e) * b.at(transpose_b ? i % n * k + e : e * n + i % n);
    wanted.push_back(sum);
    of_cpu = std::max(of_cpu, std::abs(by_cpu.at(i) - sum));
  }
  for (int64_t i = 0; i < m * n; ++i)
    ASSERT_LE(std::abs(made.at(i) - wanted[static_cast<size_t>(i)]), 1.5 * of_cpu + unit_at(wanted[static_cast<size_t>(i)], made.dtype))
        << text(a.dtype, " to ", made.dtype, ", ", m, "x", n, "x", k, ", element ", i);
}

}  // namespace st

// A row whose squares leave fp32's range: its norm and the norm's gradient in double, element by element. The vector loops of
// layer_norm.cpp and rms_norm.cpp give different bits, so the choice depends on the row's own elements only.
#pragma once

#include <cmath>

#include "backend/cpu/convert.h"

namespace st::cpu::ST_ISA {

/// Whether fp32 represents the squares of a row; `square`: their mean plus epsilon. Below the bound, significant terms may be flushed to 0.
template <class C>
bool holds_squares(double square) {
  return !std::is_same_v<C, float> || (square >= 0x1p-80 && std::isfinite(square));
}
/// The same, from the stored rstd, for the gradient.
template <class C>
bool holds_squares_of(C rstd) {
  return !std::is_same_v<C, float> || (rstd >= C(0x1p-60) && rstd <= C(0x1p40));
}

/// Whether fp32 represents the terms of the gradient, given their sums: near the end of the range their differences would overflow.
template <class C>
bool holds_terms(double sums) {
  return !std::is_same_v<C, float> || sums < 0x1p120;
}

/// Calls f(T, G) with the types of x and gamma: G is T, or fp32 for a 16-bit T.
template <class F>
void with_norm_types(const char* op, DType x, DType gamma, const F& f) {
  with_float(op, x, [&](auto t) {
    using T = decltype(t);
    if constexpr (!std::is_same_v<T, Compute<T>>)
      if (gamma != x) return f(t, Compute<T>());
    f(t, t);
  });
}

template <class T>
struct NormRow {
  using C = Compute<T>;

  /// centered: squares about the row's mean, else about 0.
  NormRow(const T* row, int64_t row_columns, bool centered) : x(row), columns(row_columns) {
    if (centered) mean = sum_in_double(x, columns) / static_cast<double>(columns);
  }

  double value(int64_t i) const { return static_cast<double>(widen(x[i])) - mean; }

  /// Computes the row's rstd.
  void take_root(double epsilon) {
    double squares = 0;
    for (int64_t i = 0; i < columns; ++i) squares += value(i) * value(i);
    rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
  }
  /// Uses the stored rstd; a stored 0 is below fp32's range, for a row where epsilon is negligible, and is recomputed.
  void take_root_of(C stored) {
    rstd = static_cast<double>(stored);
    if (stored == 0) take_root(0);
  }

  const T* x;
  int64_t columns;
  double mean = 0, rstd = 0;
};

/// y = n gamma + beta (null: no beta), n = (x - mean) rstd
template <class T, class G>
[[gnu::noinline]] void write_norm(const NormRow<T>& row, const G* gamma, const G* beta, T* y) {
  for (int64_t i = 0; i < row.columns; ++i) {
    const double shift = beta == nullptr ? 0 : static_cast<double>(widen(beta[i]));
    y[i] = narrow<T>(static_cast<Compute<T>>(row.value(i) * row.rstd * static_cast<double>(widen(gamma[i])) + shift));
  }
}

/// dx = rstd (g - sum(g) / C - n sum(g n) / C), g = dy gamma; without the middle term if not centered.
template <class T, class G>
[[gnu::noinline]] void write_norm_gradient(const NormRow<T>& row, bool centered, const G* gamma, const T* dy, T* dx) {
  const auto g = [&](int64_t i) { return static_cast<double>(widen(dy[i])) * static_cast<double>(widen(gamma[i])); };
  double along_one = 0, along_normal = 0;
  for (int64_t i = 0; i < row.columns; ++i) {
    if (centered) along_one += g(i);
    along_normal += g(i) * row.value(i) * row.rstd;
  }
  along_one /= static_cast<double>(row.columns);
  along_normal /= static_cast<double>(row.columns);
  for (int64_t i = 0; i < row.columns; ++i)
    dx[i] = narrow<T>(static_cast<Compute<T>>(row.rstd * (g(i) - along_one - row.value(i) * row.rstd * along_normal)));
}

/// dgamma += dy n
template <class T>
[[gnu::noinline]] void add_gamma_gradient(const NormRow<T>& row, const T* dy, Compute<T>* dgamma) {
  for (int64_t i = 0; i < row.columns; ++i)
    dgamma[i] += static_cast<Compute<T>>(static_cast<double>(widen(dy[i])) * row.value(i) * row.rstd);
}

}  // namespace st::cpu::ST_ISA

#include "comparison.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace st::conformance {
namespace {

bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return largest;
}

/// `allowed`: the distance from an expected element. Most of a case's time goes into these loops.
template <class Allowed>
::testing::AssertionResult compare(const Tensor& got, const Tensor& want, const std::vector<double>& wanted, const Allowed& allowed) {
  if (got.shape() != want.shape()) {
    return ::testing::AssertionFailure() << "shape " << text(got.shape()) << ", wanted " << text(want.shape());
  }
  if (got == want) return ::testing::AssertionSuccess();
  const std::vector<double> values = got.values();
  int64_t first = -1, worst = -1, off = 0;
  double worst_excess = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double g = values[i], w = wanted[i], most = allowed(w);
    // If nothing is allowed, the sign of a zero counts too.
    if ((g == w && !(most == 0 && std::signbit(g) != std::signbit(w))) || (std::isnan(g) && std::isnan(w))) continue;
    const double excess = std::abs(g - w) / most;
    if (excess <= 1) continue;  // false for NaN: one of the two is not finite
    if (first < 0) first = worst = static_cast<int64_t>(i);
    ++off;
    if (excess > worst_excess) worst = static_cast<int64_t>(i), worst_excess = excess;
  }
  if (off == 0) return ::testing::AssertionSuccess();
  const auto show = [&](int64_t i) {
    return text("element ", i, " is ", got.at(i), ", wanted ", want.at(i), " (off by ", std::abs(got.at(i) - want.at(i)), ", allowed ",
                allowed(want.at(i)), ")");
  };
  return ::testing::AssertionFailure() << off << " of " << want.elements() << " elements of " << name_of(got.dtype()) << text(got.shape())
                                       << " are off; first: " << show(first) << "; worst: " << show(worst);
}

}  // namespace

::testing::AssertionResult near(const Tensor& got, const Tensor& want, const Tolerance& tolerance, DType computed_in) {
  const std::vector<double> wanted = want.values();
  if (tolerance.exact() || !is_floating(got.dtype())) return compare(got, want, wanted, [](double) { return 0.0; });
  const auto compute_unit = [](DType dtype) { return is_half(dtype) ? unit_of(DType::f32) : unit_of(dtype); };
  const double unit = std::max(compute_unit(got.dtype()), compute_unit(computed_in));
  const double own = is_half(got.dtype()) ? unit_of(got.dtype()) : 0;
  // Results below the normal range are flushed to zero; f16's own smallest step is 2^-24.
  const double floor = got.dtype() == DType::f16 ? 0x1p-24 : got.dtype() == DType::f64 ? 1e-300 : 0x1p-126;
  const double largest = (tolerance.largest * unit + tolerance.stored * own) * largest_of(wanted);
  return compare(got, want, wanted, [=](double w) { return (tolerance.each * unit + own) * std::abs(w) + largest + floor; });
}

::testing::AssertionResult near(const Tensor& got, const Tensor& want, double relative_to_largest) {
  const std::vector<double> wanted = want.values();
  const double allowed = relative_to_largest * largest_of(wanted) + 0x1p-126;
  return compare(got, want, wanted, [=](double) { return allowed; });
}

}  // namespace st::conformance

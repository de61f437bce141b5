#include "comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace st::conformance {
namespace {

bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

double largest_of(const Tensor& x) {
  double largest = 0;
  for (int64_t i = 0; i < x.elements(); ++i)
    if (std::isfinite(x.at(i))) largest = std::max(largest, std::abs(x.at(i)));
  return largest;
}

::testing::AssertionResult compare(const Tensor& got, const Tensor& want, const std::function<double(double)>& allowed) {
  if (got.shape() != want.shape()) {
    return ::testing::AssertionFailure() << "shape " << text(got.shape()) << ", wanted " << text(want.shape());
  }
  int64_t first = -1, worst = -1, off = 0;
  double worst_excess = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double g = got.at(i), w = want.at(i);
    const bool same_bits_wanted = allowed(w) == 0;  // then the sign of a zero counts too
    if ((g == w && !(same_bits_wanted && std::signbit(g) != std::signbit(w))) || (std::isnan(g) && std::isnan(w))) continue;
    const double excess = std::abs(g - w) / allowed(w);
    if (excess <= 1) continue;  // false for NaN: one of the two is not finite
    if (first < 0) first = worst = i;
    ++off;
    if (excess > worst_excess) worst = i, worst_excess = excess;
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
  if (tolerance.exact() || !is_floating(got.dtype())) return compare(got, want, [](double) { return 0.0; });
  const auto compute_unit = [](DType dtype) { return is_half(dtype) ? unit_of(DType::f32) : unit_of(dtype); };
  const double unit = std::max(compute_unit(got.dtype()), compute_unit(computed_in));
  const double own = is_half(got.dtype()) ? unit_of(got.dtype()) : 0;
  // Results below the normal range are flushed to zero; f16's own smallest step is 2^-24.
  const double floor = got.dtype() == DType::f16 ? 0x1p-24 : got.dtype() == DType::f64 ? 1e-300 : 0x1p-126;
  const double largest = (tolerance.largest * unit + tolerance.stored * own) * largest_of(want);
  return compare(got, want, [=](double w) { return (tolerance.each * unit + own) * std::abs(w) + largest + floor; });
}

::testing::AssertionResult near(const Tensor& got, const Tensor& want, double relative_to_largest) {
  const double allowed = relative_to_largest * largest_of(want) + 0x1p-126;
  return compare(got, want, [=](double) { return allowed; });
}

}  // namespace st::conformance

#include "product_values.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.h"

namespace st::fuzz {
namespace {

constexpr double kSqrt2OverPi = 0.79788456080286535588, kGeluCubic = 0.044715;

double activated(GemmActivation activation, double x) {
  switch (activation) {
    case GemmActivation::none:
      return x;
    case GemmActivation::relu:
      return x < 0 ? 0 : x;
    case GemmActivation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(kSqrt2OverPi * (x + kGeluCubic * x * x * x)));
    case GemmActivation::gelu_erf:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    default:
      return x / (1 + std::exp(-x));
  }
}

double derivative(GemmActivation activation, double x) {
  switch (activation) {
    case GemmActivation::none:
      return 1;
    case GemmActivation::relu:
      return x > 0 ? 1 : 0;
    case GemmActivation::gelu_tanh: {
      const double t = std::tanh(kSqrt2OverPi * (x + kGeluCubic * x * x * x));
      return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kSqrt2OverPi * (1 + 3 * kGeluCubic * x * x);
    }
    case GemmActivation::gelu_erf:
      return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * 0.5 * kSqrt2OverPi * std::exp(-x * x / 2);
    default: {
      const double s = 1 / (1 + std::exp(-x));
      return s + x * s * (1 - s);
    }
  }
}

struct Element {
  int64_t matrix, row, column;
};

/// A value in double, and the sum of the terms' magnitudes, to which rounding errors are proportional.
struct Sum {
  double value, magnitude;
};

Sum sum_at(const ProductProblem& product, const Element& at) {
  const GemmProblem& p = product.gemm;
  const Contents& x = product.contents;
  const int64_t of_a = place_of_a(p).batch == 1 ? 0 : at.matrix, of_b = place_of_b(p).batch == 1 ? 0 : at.matrix;
  const int64_t a = (of_a * p.m + at.row) * p.k, b = of_b * p.k * p.n + at.column;
  Sum sum{};
  const auto add = [&](double term) {
    sum.value += term;
    sum.magnitude += std::abs(term);
  };
  for (int64_t k = 0; k < p.k; ++k)
    add(static_cast<double>(x.a[static_cast<size_t>(a + k)]) * static_cast<double>(x.b[static_cast<size_t>(b + k * p.n)]));
  sum = {static_cast<double>(p.alpha) * sum.value, std::abs(static_cast<double>(p.alpha)) * sum.magnitude};
  const int64_t element = (at.matrix * p.m + at.row) * p.n + at.column;
  if (p.beta != 0) add(static_cast<double>(p.beta) * static_cast<double>(x.c[static_cast<size_t>(element)]));
  if (p.bias) add(static_cast<double>(x.bias[static_cast<size_t>(at.column)]));
  return sum;
}

bool is_right(const ProductProblem& product, float got, const Sum& want) {
  const GemmProblem& p = product.gemm;
  if (product.exact) return got == rounded(p.c_type, want.value);
  if (std::isnan(want.value)) return std::isnan(got);
  if (std::isinf(want.value)) return static_cast<double>(got) == want.value;
  if (p.c_type == DType::f16 && std::abs(want.value) > 65000) return true;  // close to overflow: either result is right
  // Each of the k + 8 roundings errs by at most half a unit of a partial sum in fp32; long sums are split, so their partial sums are
  // smaller.
  const double summing = static_cast<double>(p.k + 8) * 0x1p-23 * want.magnitude * (p.k > 200 ? 0.25 : 1);
  const double unit = p.c_type == DType::f32 ? 0 : p.c_type == DType::bf16 ? 0x1p-8 : 0x1p-10;
  const double least = p.c_type == DType::f32 ? 0 : p.c_type == DType::bf16 ? 1e-30 : 1e-7;  // denormals of f16 are coarse
  return std::abs(static_cast<double>(got) - want.value) <= summing + unit * std::abs(want.value) + least;
}

/// The expected result of the epilogue for one element, and its tolerance.
struct Target {
  double value, tolerance;
  bool is_finite;
};

Target target_of(const ProductProblem& product, double x, size_t at) {
  const Stages& s = product.stages;
  const DType type = product.gemm.c_type;
  const double y =
      s.derivative ? x * derivative(s.activation, static_cast<double>(product.contents.derivative[at])) : activated(s.activation, x);
  const bool curved = s.activation != GemmActivation::none && s.activation != GemmActivation::relu;  // the others are exact
  const double unit = type == DType::f32 ? 3e-6 : type == DType::bf16 ? 1.02 * 0x1p-7 : 1.02 * 0x1p-9;
  const double scale = std::max(std::abs(x) * (s.derivative ? 1.3 : 1), std::abs(y));  // no derivative exceeds 1.3
  double tolerance = curved ? unit * std::abs(y) + (type == DType::f32 ? 3e-6 : 1e-5) * scale : 0;
  double value = static_cast<double>(rounded(type, y));
  if (s.residual) {
    value = static_cast<double>(rounded(type, static_cast<double>(static_cast<float>(value) + product.contents.residual[at])));
    if (curved) tolerance += unit * std::abs(value) + 2e-7;
  }
  if (curved && type == DType::f16) tolerance += 2e-7;
  return {value, tolerance, std::isfinite(x) && std::isfinite(y) && std::isfinite(value)};
}

/// In the order that the header promises: blocks of 32 rows in fp32, the blocks in double.
float column_sum(const ProductProblem& product, const Written& finished, int64_t column) {
  const GemmProblem& p = product.gemm;
  const int64_t rows = p.batch * p.m;
  double total = 0;
  for (int64_t first = 0; first < rows; first += 32) {
    float block = 0;
    for (int64_t i = first; i < std::min(rows, first + 32); ++i)
      block += value_of(finished.c[static_cast<size_t>(i * p.n + column)], p.c_type);
    total += static_cast<double>(block);
  }
  return rounded(p.c_type, total);
}

void check_column_sums(const ProductTrial& trial, const ProductProblem& product, const Written& finished) {
  for (int64_t j = 0; j < product.gemm.n; ++j) {
    const float got = value_of(finished.column_sums[static_cast<size_t>(j)], product.gemm.c_type), want = column_sum(product, finished, j);
    if (got == want || (std::isnan(got) && std::isnan(want))) continue;
    return trial.finding(text("the sum of column ", j, " is ", got, ", not ", want));
  }
}

}  // namespace

void check_values(ProductTrial& trial, const ProductProblem& product, const Written& plain) {
  constexpr int64_t kMostTerms = 6'000'000;
  const GemmProblem& p = product.gemm;
  const auto total = static_cast<int64_t>(plain.c.size());
  const bool all = p.k * total <= kMostTerms;
  const int64_t looks = all ? total : std::max<int64_t>(1, kMostTerms / p.k);
  for (int64_t look = 0; look < looks; ++look) {
    const int64_t i = all ? look : trial.draw.in(0, total - 1);
    const Element at{i / (p.m * p.n), i / p.n % p.m, i % p.n};
    const Sum want = sum_at(product, at);
    const float got = value_of(plain.c[static_cast<size_t>(i)], p.c_type);
    if (is_right(product, got, want)) continue;
    return trial.finding(text("matrix ", at.matrix, " row ", at.row, " column ", at.column, " is ", got, ", not ", want.value));
  }
}

void check_epilogue(const ProductTrial& trial, const ProductProblem& product, const Written& plain, const Written& finished) {
  const Stages& s = product.stages;
  const DType type = product.gemm.c_type;
  const bool picks = s.derivative && s.activation == GemmActivation::relu;  // 0 replaces the element, even a NaN
  for (size_t i = 0; i < plain.c.size(); ++i) {
    const double x = static_cast<double>(value_of(plain.c[i], type)), got = static_cast<double>(value_of(finished.c[i], type));
    const Target want = target_of(product, x, i);
    const bool right = want.is_finite ? std::abs(got - want.value) <= want.tolerance : !std::isnan(x) || std::isnan(got) || picks;
    if (!right) return trial.finding(text("the epilogue makes ", got, " of element ", i, ", ", x, ", not ", want.value));
  }
  if (s.column_sums) check_column_sums(trial, product, finished);
}

}  // namespace st::fuzz

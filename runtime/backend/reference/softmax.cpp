// softmax and log_softmax along an axis, and their backward. The largest element is subtracted first, so that e^x does not overflow.
#include <algorithm>
#include <limits>

#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/strides.h"

namespace st::reference {
namespace {

/// Calls body(at, n) for each line along the op's axis; at(a) is the position of its element a.
template <class Body>
void each_line(const Call& call, Body body) {
  const Shape& shape = call.in[0].shape;
  const Around around(shape, normalize_axis("softmax", call.attrs->integer("axis"), shape.rank()));
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t i = 0; i < around.inner; ++i) body([&](int64_t a) { return around.at(o, a, i); }, around.axis);
  }
}

/// Largest element and sum of e^(x - largest).
template <class At>
std::pair<double, double> peak_and_sum(const Operand& x, At at, int64_t n) {
  double peak = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t a = 0; a < n; ++a) peak = std::max(peak, get(x, at(a)));
  for (int64_t a = 0; a < n; ++a) sum += std::exp(get(x, at(a)) - peak);
  return {peak, sum};
}

}  // namespace

constinit const Kernel kernel_softmax{[](const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  each_line(call, [&](auto at, int64_t n) {
    const auto [peak, sum] = peak_and_sum(x, at, n);
    for (int64_t a = 0; a < n; ++a) set(y, at(a), std::exp(get(x, at(a)) - peak) / sum);
  });
}};

constinit const Kernel kernel_log_softmax{[](const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  each_line(call, [&](auto at, int64_t n) {
    const auto [peak, sum] = peak_and_sum(x, at, n);
    for (int64_t a = 0; a < n; ++a) set(y, at(a), get(x, at(a)) - peak - std::log(sum));
  });
}};

constinit const Kernel kernel_softmax_backward{[](const Call& call) {
  const Operand &y = call.in[0], &dy = call.in[1], &dx = call.out[0];
  each_line(call, [&](auto at, int64_t n) {
    double sum = 0;
    for (int64_t a = 0; a < n; ++a) sum += get(y, at(a)) * get(dy, at(a));
    for (int64_t a = 0; a < n; ++a) set(dx, at(a), get(y, at(a)) * (get(dy, at(a)) - sum));
  });
}};

constinit const Kernel kernel_log_softmax_backward{[](const Call& call) {
  const Operand &y = call.in[0], &dy = call.in[1], &dx = call.out[0];
  each_line(call, [&](auto at, int64_t n) {
    double sum = 0;
    for (int64_t a = 0; a < n; ++a) sum += get(dy, at(a));
    for (int64_t a = 0; a < n; ++a) set(dx, at(a), get(dy, at(a)) - std::exp(get(y, at(a))) * sum);
  });
}};

}  // namespace st::reference

// cross_entropy: sum = sum_r w_r (lse_r - logits[r, target_r]), count = sum_r w_r over rows whose target is not ignore_index (weights: 1
// when not given), and its backward: dlogits[r, c] = dsum w_r (softmax(logits)[r, c] - [c = target_r]), zero in ignored rows.
// Backward makes the softmax anew from the logits: the stored lse has been rounded.
#include <algorithm>
#include <limits>

#include "backend/index_check.h"
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {
namespace {

double log_sum_exp(const Operand& logits, int64_t from, int64_t n) {
  double peak = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t c = 0; c < n; ++c) peak = std::max(peak, get(logits, from + c));
  for (int64_t c = 0; c < n; ++c) sum += std::exp(get(logits, from + c) - peak);
  return peak + std::log(sum);
}

double weight_of(const Call& call, size_t weights, int64_t row) { return call.in.size() > weights ? get(call.in[weights], row) : 1; }

void cross_entropy(const Call& call) {
  const Operand &logits = call.in[0], &targets = call.in[1], &lse = call.out[2];
  const int64_t ignored = call.attrs->integer("ignore_index"), classes = logits.shape.last();
  double sum = 0, count = 0;
  for (int64_t r = 0; r < targets.elements(); ++r) {
    const double log_sum = log_sum_exp(logits, r * classes, classes);
    set(lse, r, log_sum);
    const int64_t target = get_integer(targets, r);
    if (target == ignored) continue;
    check_target("cross_entropy", target, r, targets.shape, classes);
    const double weight = weight_of(call, 2, r);
    sum += weight * (log_sum - get(logits, r * classes + target));
    count += weight;
  }
  set(call.out[0], 0, sum);
  set(call.out[1], 0, count);
}

void cross_entropy_backward(const Call& call) {
  const Operand &logits = call.in[0], &targets = call.in[1], &dsum = call.in[3], &dlogits = call.out[0];
  const int64_t ignored = call.attrs->integer("ignore_index"), classes = logits.shape.last();
  for (int64_t r = 0; r < targets.elements(); ++r) {
    const int64_t target = get_integer(targets, r), row = r * classes;
    if (target == ignored) {
      for (int64_t c = 0; c < classes; ++c) set(dlogits, row + c, 0);
      continue;
    }
    check_target("cross_entropy_backward", target, r, targets.shape, classes);
    const double seed = get(dsum, 0) * weight_of(call, 4, r), log_sum = log_sum_exp(logits, row, classes);
    for (int64_t c = 0; c < classes; ++c) {
      set(dlogits, row + c, seed * (std::exp(get(logits, row + c) - log_sum) - (c == target ? 1 : 0)));
    }
  }
}

}  // namespace

constinit const Kernel kernel_cross_entropy{cross_entropy};
constinit const Kernel kernel_cross_entropy_backward{cross_entropy_backward};

}  // namespace st::reference

// cross_entropy: sum = sum_r w_r (lse_r - logits[r, target_r]), count = sum_r w_r over rows whose target is not ignore_index (weights: 1 if
// not given). Backward: dlogits[r, c] = dsum w_r (softmax(logits)[r, c] - [c = target_r]), zero in ignored rows. With smoothing s the
// target is 1 - s + s / V for class target_r and s / V for the others; a z-loss z adds z lse^2 to a row. Backward recomputes the softmax
// from the logits, because the stored lse is rounded.
#include <algorithm>
#include <limits>

#include "backend/index_check.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/row_loss.h"

namespace st::reference {
namespace {

double log_sum_exp(const Operand& logits, int64_t from, int64_t n) {
  double peak = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t c = 0; c < n; ++c) peak = std::max(peak, get(logits, from + c));
  for (int64_t c = 0; c < n; ++c) sum += std::exp(get(logits, from + c) - peak);
  return peak + std::log(sum);
}

/// The loss, and the requested outputs of each row.
void cross_entropy_rows(const Call& call, size_t weights, const Operand* lse, const Operand* dlogits, double dsum) {
  const Operand &logits = call.in[0], &targets = call.in[1];
  const int64_t ignored = call.attrs->integer("ignore_index"), classes = logits.shape.last();
  double sum = 0, count = 0;
  for (int64_t r = 0; r < targets.elements(); ++r) {
    const double log_sum = log_sum_exp(logits, r * classes, classes);
    if (lse != nullptr) set(*lse, r, log_sum);
    const int64_t target = get_integer(targets, r);
    const bool is_ignored = target == ignored;
    if (!is_ignored) {
      check_target("cross_entropy", target, r, targets.shape, classes);
      const double weight = weight_of(call, weights, r);
      sum += weight * row_loss(*call.attrs, classes, log_sum, get(logits, r * classes + target), sum_of_row(logits, r));
      count += weight;
    }
    const std::optional<int64_t> wanted = is_ignored ? std::nullopt : std::optional(target);
    if (dlogits != nullptr) set_gradient(call, *dlogits, r, classes, wanted, dsum * weight_of(call, weights, r), log_sum);
  }
  set(call.out[0], 0, sum);
  set(call.out[1], 0, count);
}

void cross_entropy(const Call& call) { cross_entropy_rows(call, 2, &call.out[2], nullptr, 0); }

void fused_cross_entropy(const Call& call) { cross_entropy_rows(call, 3, nullptr, &call.out[2], get(call.in[2], 0)); }

void cross_entropy_backward(const Call& call) {
  const Operand &logits = call.in[0], &targets = call.in[1];
  const int64_t ignored = call.attrs->integer("ignore_index"), classes = logits.shape.last();
  for (int64_t r = 0; r < targets.elements(); ++r) {
    const int64_t target = get_integer(targets, r);
    if (target != ignored) check_target("cross_entropy_backward", target, r, targets.shape, classes);
    const std::optional<int64_t> wanted = target == ignored ? std::nullopt : std::optional(target);
    const double seed = get(call.in[3], 0) * weight_of(call, 4, r);
    set_gradient(call, call.out[0], r, classes, wanted, seed, log_sum_exp(logits, r * classes, classes));
  }
}

}  // namespace

constinit const Kernel kernel_cross_entropy{cross_entropy};
constinit const Kernel kernel_cross_entropy_backward{cross_entropy_backward};
constinit const Kernel kernel_fused_cross_entropy{fused_cross_entropy};

}  // namespace st::reference

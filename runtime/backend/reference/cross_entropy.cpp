// cross_entropy: sum = sum_r w_r (lse_r - logits[r, target_r]), count = sum_r w_r over rows whose target is not ignore_index (weights: 1 if
// not given). Backward: dlogits[r, c] = dsum w_r (softmax(logits)[r, c] - [c = target_r]), zero in ignored rows. With smoothing s the
// target is 1 - s + s / V for class target_r and s / V for the others; a z-loss z adds z lse^2 to a row. Backward recomputes the softmax
// from the logits, because the stored lse is rounded.
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

double row_loss(const Call& call, int64_t row, int64_t target, double log_sum) {
  const Operand& logits = call.in[0];
  const int64_t classes = logits.shape.last();
  const double smoothing = call.attrs->real("label_smoothing"), z_loss = call.attrs->real("z_loss");
  double loss = log_sum - (1 - smoothing) * get(logits, row * classes + target);
  if (smoothing != 0)
    for (int64_t c = 0; c < classes; ++c) loss -= smoothing / static_cast<double>(classes) * get(logits, row * classes + c);
  return z_loss == 0 ? loss : loss + z_loss * log_sum * log_sum;
}

/// The gradient of a row; 0 if it is ignored. dlogits may be the logits' memory. If its type differs, it is rounded like a cast after it.
void set_gradient(const Call& call, const Operand& dlogits, int64_t row, bool is_ignored, double seed, double log_sum) {
  const int64_t classes = call.in[0].shape.last(), target = is_ignored ? -1 : get_integer(call.in[1], row);
  const double smoothing = call.attrs->real("label_smoothing"), z_loss = call.attrs->real("z_loss");
  const double share = z_loss == 0 ? 1 : 1 + 2 * z_loss * log_sum;  // without a z-loss lse may be infinite
  for (int64_t c = 0; c < classes; ++c) {
    const double wanted = (c == target ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
    const double difference = std::exp(get(call.in[0], row * classes + c) - log_sum) * share - wanted;
    const double value = is_ignored ? 0 : seed * difference;
    set(dlogits, row * classes + c, dlogits.dtype == call.in[0].dtype ? value : static_cast<float>(value));
  }
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
      sum += weight * row_loss(call, r, target, log_sum);
      count += weight;
    }
    if (dlogits != nullptr) set_gradient(call, *dlogits, r, is_ignored, dsum * weight_of(call, weights, r), log_sum);
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
    const double seed = get(call.in[3], 0) * weight_of(call, 4, r);
    set_gradient(call, call.out[0], r, target == ignored, seed, log_sum_exp(logits, r * classes, classes));
  }
}

}  // namespace

constinit const Kernel kernel_cross_entropy{cross_entropy};
constinit const Kernel kernel_cross_entropy_backward{cross_entropy_backward};
constinit const Kernel kernel_fused_cross_entropy{fused_cross_entropy};

}  // namespace st::reference

// The loss and the gradient of a row of cross_entropy and of vocabulary_cross_entropy, whose logits are some of the classes.
#pragma once

#include <cmath>
#include <optional>

#include "backend/reference/elements.h"

namespace st::reference {

inline double weight_of(const Call& call, size_t weights, int64_t row) { return call.in.size() > weights ? get(call.in[weights], row) : 1; }

/// `target` is the target's logit, `logits` the sum over the classes, read only with label smoothing.
inline double row_loss(const Attrs& attrs, int64_t classes, double log_sum, double target, double logits) {
  const double smoothing = attrs.real("label_smoothing"), z_loss = attrs.real("z_loss");
  double loss = log_sum - (1 - smoothing) * target;
  if (smoothing != 0) loss -= smoothing / static_cast<double>(classes) * logits;
  return z_loss == 0 ? loss : loss + z_loss * log_sum * log_sum;
}

inline double sum_of_row(const Operand& logits, int64_t row) {
  double sum = 0;
  for (int64_t c = 0, n = logits.shape.last(); c < n; ++c) sum += get(logits, row * n + c);
  return sum;
}

/// The gradient of a row; 0 if it has no target, since that is ignored. A target outside the logits' columns is another rank's. dlogits may
/// be the logits' memory. If its type differs, it is rounded like a cast after it.
inline void set_gradient(const Call& call, const Operand& dlogits, int64_t row, int64_t classes, std::optional<int64_t> target, double seed,
                         double log_sum) {
  const Operand& logits = call.in[0];
  const double smoothing = call.attrs->real("label_smoothing"), z_loss = call.attrs->real("z_loss");
  const double share = z_loss == 0 ? 1 : 1 + 2 * z_loss * log_sum;  // without a z-loss lse may be infinite
  for (int64_t c = 0, n = logits.shape.last(); c < n; ++c) {
    const double wanted = (c == target ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
    const double difference = std::exp(get(logits, row * n + c) - log_sum) * share - wanted;
    const double value = target ? seed * difference : 0;
    set(dlogits, row * n + c, dlogits.dtype == logits.dtype ? value : static_cast<float>(value));
  }
}

}  // namespace st::reference

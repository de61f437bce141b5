// cross_entropy over ranks that each have some of the vocabulary's columns. vocabulary_terms: per row m = max x, s = sum e^(x - m), the
// target's logit (0 if another rank has it), and with label smoothing the sum of the logits, of this rank's columns.
// vocabulary_cross_entropy: M = max m over the ranks, S = sum s e^(m - M), lse = M + log S; the rest as in cross_entropy. Backward: the
// rank's own columns of its gradient.
#include <algorithm>
#include <limits>

#include "backend/index_check.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/row_loss.h"

namespace st::reference {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

/// The row's target as a column of this rank, outside its columns if another rank has it; none: ignored.
std::optional<int64_t> own_column(std::string_view op, const Call& call, int64_t row) {
  const int64_t target = get_integer(call.in[1], row);
  if (target == call.attrs->integer("ignore_index")) return {};
  check_target(op, target, row, call.in[1].shape, call.attrs->integer("classes"));
  return target - call.attrs->integer("first");
}

void vocabulary_terms(const Call& call) {
  const Operand &logits = call.in[0], &terms = call.out[0];
  const int64_t columns = logits.shape.last();
  for (int64_t r = 0; r < call.in[1].elements(); ++r) {
    double peak = kLowest, sum = 0;
    for (int64_t c = 0; c < columns; ++c) peak = std::max(peak, get(logits, r * columns + c));
    if (peak != kLowest)  // else no class here is possible; another rank may have one
      for (int64_t c = 0; c < columns; ++c) sum += std::exp(get(logits, r * columns + c) - peak);
    const auto target = own_column("vocabulary_terms", call, r);
    const bool is_here = target && *target >= 0 && *target < columns;
    set(terms, 4 * r, peak);
    set(terms, 4 * r + 1, sum);
    set(terms, 4 * r + 2, is_here ? get(logits, r * columns + *target) : 0);
    set(terms, 4 * r + 3, call.attrs->real("label_smoothing") == 0 ? 0 : sum_of_row(logits, r));
  }
}

void vocabulary_cross_entropy(const Call& call) {
  const Operand& terms = call.in[2];
  const int64_t rows = call.in[1].elements(), ranks = terms.shape[0];
  double sum = 0, count = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const auto term = [&](int64_t rank, int64_t i) { return get(terms, (rank * rows + r) * 4 + i); };
    double peak = kLowest, exponentials = 0, target = 0, logits = 0;
    for (int64_t k = 0; k < ranks; ++k) {
      peak = std::max(peak, term(k, 0));  // passes over a NaN, which the sum then has
      target += term(k, 2);
      logits += term(k, 3);
    }
    for (int64_t k = 0; k < ranks; ++k) exponentials += term(k, 1) * std::exp(term(k, 0) - peak);
    const double log_sum = peak + std::log(exponentials);
    set(call.out[2], r, log_sum);
    set(call.out[3], 2 * r, peak);
    set(call.out[3], 2 * r + 1, exponentials);
    if (!own_column("vocabulary_cross_entropy", call, r)) continue;
    const double weight = weight_of(call, 3, r);
    sum += weight * row_loss(*call.attrs, call.attrs->integer("classes"), log_sum, target, logits);
    count += weight;
  }
  set(call.out[0], 0, sum);
  set(call.out[1], 0, count);
}

void vocabulary_cross_entropy_backward(const Call& call) {
  const Operand& softmax = call.in[2];
  for (int64_t r = 0; r < call.in[1].elements(); ++r) {
    const auto target = own_column("vocabulary_cross_entropy_backward", call, r);
    const double seed = get(call.in[3], 0) * weight_of(call, 4, r);
    const double log_sum = get(softmax, 2 * r) + std::log(get(softmax, 2 * r + 1));
    set_gradient(call, call.out[0], r, call.attrs->integer("classes"), target, seed, log_sum);
  }
}

}  // namespace

constinit const Kernel kernel_vocabulary_terms{vocabulary_terms};
constinit const Kernel kernel_vocabulary_cross_entropy{vocabulary_cross_entropy};
constinit const Kernel kernel_vocabulary_cross_entropy_backward{vocabulary_cross_entropy_backward};

}  // namespace st::reference

// cross_entropy over ranks that each have some of the vocabulary's columns (Megatron-LM, Shoeybi et al. 2019). vocabulary_terms gives per
// row m = max x, s = sum e^(x - m), the target's logit and the sum of the logits, of the rank's own columns. vocabulary_cross_entropy
// combines those of all ranks in their order: the maximum M = max m, the sum S = sum s e^(m - M), lse = M + log S. With one rank M = m and
// S = s, so all results have the bits of cross_entropy, whose code for rows and gradients is shared (class_rows.h).
#include "backend/cpu/class_rows.h"
#include "backend/cpu/kernels.h"

namespace st::cpu::ST_ISA {
namespace {

constexpr int64_t kTerms = 4;
constexpr double kLowest = -std::numeric_limits<double>::infinity();

template <class T>
void vocabulary_terms_of(const Call& call) {
  const LossRows<T> rows("vocabulary_terms", call, 2);
  double* const terms = as<double>(call.out[0]);
  each_softmax(call, rows, [&](int64_t r, const T* row, const RowSoftmax<Compute<T>>& softmax) {
    const auto target = rows.target(r);
    const bool is_here = target && *target >= 0 && *target < rows.columns;
    double* const to = terms + r * kTerms;
    to[0] = static_cast<double>(softmax.peak);
    to[1] = to[0] == kLowest ? 0 : softmax.sum;  // no class here is possible; another rank may have one
    to[2] = is_here ? static_cast<double>(widen(row[*target])) : 0;
    to[3] = rows.terms.smoothing == 0 ? 0 : sum_of(row, rows.columns);
  });
}

/// A row's terms of all ranks together.
struct Combined {
  Combined(const double* terms, int64_t ranks, int64_t stride) {
    for (int64_t k = 0; k < ranks; ++k) {
      const double* const own = terms + k * stride;
      peak = std::max(peak, own[0]);  // passes over a NaN, which the sum then has
      target += own[2];
      logits += own[3];
    }
    for (int64_t k = 0; k < ranks; ++k) sum += terms[k * stride + 1] * std::exp(terms[k * stride] - peak);
  }

  double peak = kLowest, sum = 0, target = 0, logits = 0;
};

template <class T>
void vocabulary_cross_entropy_of(const Call& call) {
  const LossRows<T> rows("vocabulary_cross_entropy", call, 3);
  const double* const terms = as<const double>(call.in[2]);
  const int64_t ranks = call.in[2].shape[0], stride = rows.count * kTerms;
  double* const losses = reinterpret_cast<double*>(pointer_to(call.workspace));
  auto* const lse = as<Compute<T>>(call.out[2]);
  double* const softmax = as<double>(call.out[3]);
  call.workers->run_range(rows.count, rows_per_task(ranks * kTerms), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Combined row(terms + r * kTerms, ranks, stride);
      const double log_sum = RowSoftmax<double>{row.peak, row.sum}.log_sum();
      losses[r] = rows.target(r) ? rows.terms.loss(log_sum, row.target, row.logits) : 0;
      lse[r] = static_cast<Compute<T>>(log_sum);
      softmax[2 * r] = row.peak;
      softmax[2 * r + 1] = row.sum;
    }
  });
  rows.add_up(call, losses);
}

template <class T>
void vocabulary_cross_entropy_backward_of(const Call& call) {
  const LossRows<T> rows("vocabulary_cross_entropy_backward", call, 4);
  const double* const softmax = as<const double>(call.in[2]);
  const double dsum = *as<const double>(call.in[3]);
  T* const dlogits = as<T>(call.out[0]);
  call.workers->run_range(rows.count, rows_per_task(rows.columns), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const RowSoftmax<Compute<T>> of_row{static_cast<Compute<T>>(softmax[2 * r]), softmax[2 * r + 1]};
      const int64_t at = r * rows.columns;
      write_gradient<T, T>(rows.logits + at, dlogits + at, rows.columns, rows.target(r), dsum * rows.weight(r), of_row, rows.terms);
    }
  });
}

void run_vocabulary_terms(const Call& call) {
  with_float("vocabulary_terms", call.in[0].dtype, [&](auto t) { vocabulary_terms_of<decltype(t)>(call); });
}

void run_vocabulary_cross_entropy(const Call& call) {
  with_float("vocabulary_cross_entropy", call.in[0].dtype, [&](auto t) { vocabulary_cross_entropy_of<decltype(t)>(call); });
}

void run_vocabulary_cross_entropy_backward(const Call& call) {
  with_float("vocabulary_cross_entropy_backward", call.in[0].dtype,
             [&](auto t) { vocabulary_cross_entropy_backward_of<decltype(t)>(call); });
}

}  // namespace

const Kernel kernel_vocabulary_terms = {run_vocabulary_terms};
const Kernel kernel_vocabulary_cross_entropy = {run_vocabulary_cross_entropy};
const Kernel kernel_vocabulary_cross_entropy_backward = {run_vocabulary_cross_entropy_backward};

}  // namespace st::cpu::ST_ISA

// Rows of logits for cross_entropy and vocabulary_cross_entropy: the softmax of a row, its loss, its gradient.
#pragma once

#include <cmath>
#include <optional>

#include "backend/cpu/convert.h"
#include "backend/cpu/scalar.h"
#include "backend/cpu/vector_exp.h"
#include "backend/index_check.h"

namespace st::cpu::ST_ISA {

constexpr int64_t kClassesAhead = 512;  // elements of the next row: the hardware prefetches from memory too late

/// sum e^(x - peak) of a row, in the order of sum_blocks(), and max_of() the next row between the exponentials, which hide the wait for
/// memory.
template <class T>
double sum_and_next_max(const T* row, const T* next, int64_t n, Compute<T> peak, Compute<T>& next_peak) {
  using C = Compute<T>;
  using B = Batch<C>;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  constexpr int64_t L = kLanes<C>;
  const B shift(peak);
  B best(kLowest);
  auto nan = either_is_nan(best, best);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t end = std::min(n, begin + kSumBlock);
    B a(C(0)), b(C(0)), c(C(0)), d(C(0));
    int64_t i = begin;
    for (; i + 4 * L <= end; i += 4 * L) {
      for (int64_t k = 0; k < 4; ++k) __builtin_prefetch(next + i + k * L + kClassesAhead);
      const B p = load(next + i), q = load(next + i + L), s = load(next + i + 2 * L), t = load(next + i + 3 * L);
      nan = nan | either_is_nan(p, q) | either_is_nan(s, t);
      best = xsimd::max(xsimd::max(p, q), xsimd::max(xsimd::max(s, t), best));
      a += exp_of(load(row + i) - shift);
      b += exp_of(load(row + i + L) - shift);
      c += exp_of(load(row + i + 2 * L) - shift);
      d += exp_of(load(row + i + 3 * L) - shift);
    }
    for (; i < end; i += L) {
      const int64_t count = std::min(L, end - i);
      const B p = load_part(next + i, count, kLowest), e = exp_of(load_part(row + i, count, kLowest) - shift);
      nan = nan | either_is_nan(p, p);
      best = xsimd::max(p, best);
      (count == L ? a : b) += e;
    }
    total += static_cast<double>(add_lanes<C>((a + b) + (c + d)));
  }
  next_peak = xsimd::any(nan) ? std::numeric_limits<C>::quiet_NaN() : max_lanes<C>(best);
  return total;
}

/// Terms added to the target's likelihood.
struct LossTerms {
  LossTerms(const Attrs& attrs, int64_t classes)
      : smoothing(attrs.real("label_smoothing")),
        even(smoothing / static_cast<double>(classes)),
        z_loss(attrs.has("z_loss") ? attrs.real("z_loss") : 0) {}
  /// The factor of the softmax in the gradient. Without a z-loss lse may be infinite.
  double share(double lse) const { return z_loss == 0 ? 1 : 1 + 2 * z_loss * lse; }
  double square(double lse) const { return z_loss == 0 ? 0 : z_loss * lse * lse; }

  /// A row's loss; `logits` is their sum over the classes, read only with label smoothing.
  double loss(double lse, double target, double logits) const {
    const double rest = lse + square(lse);
    return (smoothing == 0 ? rest : rest - even * logits) - (1 - smoothing) * target;
  }

  double smoothing, even, z_loss;
};

/// A row's largest logit and sum e^(x - peak).
template <class C>
struct RowSoftmax {
  C peak;
  double sum;
  double log_sum() const { return static_cast<double>(peak) + std::log(sum); }
};

/// Writes a row of dlogits, possibly over the row of logits; zero if the target is ignored. A target outside the row's columns is another
/// rank's. `seed` is w dsum.
template <class T, class R>
[[gnu::noinline]] void write_gradient(const T* row, void* to, int64_t columns, std::optional<int64_t> target, double seed,
                                      const RowSoftmax<Compute<T>>& softmax, const LossTerms& terms) {
  using C = Compute<T>;
  using B = Batch<C>;
  R* const drow = static_cast<R*>(to);
  if (!target) {
    std::memset(drow, 0, static_cast<size_t>(columns) * sizeof(R));
    return;
  }
  const bool is_here = *target >= 0 && *target < columns;
  const double at_target = is_here ? static_cast<double>(widen(row[*target])) : 0;  // read before it may be written over
  const double share = terms.share(softmax.log_sum()), even = terms.even;
  const B scale(static_cast<C>(seed * share / softmax.sum)), shift(softmax.peak);
  const B rest(even == 0 ? C(-0.0) : static_cast<C>(-seed * even));  // adding -0 changes nothing
  each_vector<C>(
      columns, [&](int64_t i, int64_t count) { store_part(drow + i, fma(scale, exp_of(load_part(row + i, count) - shift), rest), count); });
  if (!is_here) return;
  // At the target the difference is computed in double, since the softmax may be close to 1.
  const double p = std::exp(at_target - static_cast<double>(softmax.peak)) / softmax.sum;
  drow[*target] = narrow<R>(static_cast<C>(seed * (p * share - (1 - terms.smoothing) - even)));
}

/// The inputs that both directions read. The logits' columns are all classes, or this rank's of the attribute `classes`, from `first` on.
template <class T>
struct LossRows {
  LossRows(std::string_view op, const Call& call, size_t weights_at)
      : logits(as<const T>(call.in[0])),
        columns(call.in[0].shape.last()),
        classes(call.attrs->has("classes") ? call.attrs->integer("classes") : columns),
        count(call.in[1].elements()),
        terms(*call.attrs, classes),
        targets_(call.in[1]),
        weights_(call.in.size() > weights_at ? as<const T>(call.in[weights_at]) : nullptr),
        ignored_(call.attrs->integer("ignore_index")),
        first_(call.attrs->has("first") ? call.attrs->integer("first") : 0) {
    for (int64_t r = 0; r < count; ++r)
      if (const int64_t t = integer_of(targets_, r); t != ignored_) check_target(op, t, r, targets_.shape, classes);
  }

  /// The target's column, outside 0..columns-1 if another rank has it; none: ignored.
  std::optional<int64_t> target(int64_t r) const {
    const int64_t target = integer_of(targets_, r);
    return target == ignored_ ? std::nullopt : std::optional(target - first_);
  }
  double weight(int64_t r) const { return weights_ == nullptr ? 1 : static_cast<double>(widen(weights_[r])); }

  /// The sum and the count of the rows' losses.
  void add_up(const Call& call, const double* losses) const {
    double sum = 0, weights = 0;
    for (int64_t r = 0; r < count; ++r) {
      if (!target(r)) continue;
      sum += weight(r) * losses[r];
      weights += weight(r);
    }
    *as<double>(call.out[0]) = sum;
    *as<double>(call.out[1]) = weights;
  }

  const T* const logits;
  const int64_t columns, classes, count;
  const LossTerms terms;

 private:
  const Operand& targets_;
  const T* const weights_;
  const int64_t ignored_, first_;
};

/// each(r, row, softmax) for every row, in tasks.
template <class T, class Each>
void each_softmax(const Call& call, const LossRows<T>& rows, Each each) {
  const int64_t columns = rows.columns;
  // A task has several rows if there are many: the maximum of all but the first overlaps with another row's sum.
  const int64_t together = std::max(rows_per_task(columns), std::clamp<int64_t>(rows.count / 64, 1, 8));
  call.workers->run_range(rows.count, together, [&](int64_t begin, int64_t end) {
    Compute<T> peak = max_of(rows.logits + begin * columns, columns);
    for (int64_t r = begin; r < end; ++r) {
      const T* const row = rows.logits + r * columns;
      Compute<T> next_peak;
      const double sum = sum_and_next_max(row, r + 1 < end ? row + columns : row, columns, peak, next_peak);
      each(r, row, RowSoftmax<Compute<T>>{peak, sum});
      peak = next_peak;
    }
  });
}

}  // namespace st::cpu::ST_ISA

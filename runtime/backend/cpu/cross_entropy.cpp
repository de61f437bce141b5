// sum = sum_r w_r (lse_r - logits[r, target_r]), lse = max + log sum e^(x - max): a row is read for its maximum, beside the sum of the row
// before, and then, from the cache, for its sum. Backward reads the logits once and writes dlogits once: w dsum (e^(x - lse) - [c =
// target]).
#include <cmath>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scalar.h"
#include "backend/cpu/vector_exp.h"
#include "backend/index_check.h"

namespace st::cpu::ST_ISA {
namespace {

void check_targets(std::string_view op, const Operand& targets, int64_t ignored, int64_t classes) {
  for (int64_t r = 0; r < targets.elements(); ++r) {
    const int64_t target = integer_of(targets, r);
    if (target != ignored) check_target(op, target, r, targets.shape, classes);
  }
}

constexpr int64_t kClassesAhead = 512;  // elements of the next row: from memory the hardware's own prefetcher is late

/// sum e^(x - peak) of a row, in the order of sum_blocks(), and max_of() the next row between the exponentials: it is waited for while
/// there is something to compute.
template <class T>
double sum_beside_max(const T* row, const T* next, int64_t n, Compute<T> peak, Compute<T>& next_peak) {
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

template <class T>
void cross_entropy_of(const Call& call) {
  using C = Compute<T>;
  const T* const logits = call.in[0].as<const T>();
  const Operand& targets = call.in[1];
  const T* const weights = call.in.size() > 2 ? call.in[2].as<const T>() : nullptr;
  C* const lse = call.out[2].as<C>();
  double* const losses = reinterpret_cast<double*>(call.workspace.data());
  const int64_t ignored = call.attrs->integer("ignore_index");
  const int64_t classes = call.in[0].shape.last(), rows = targets.elements();
  check_targets("cross_entropy", targets, ignored, classes);

  // A task has several rows where there are many: all but the first are looked at beside another.
  const int64_t together = std::max(rows_per_task(classes), std::clamp<int64_t>(rows / 64, 1, 8));
  call.workers->run_range(rows, together, [&](int64_t begin, int64_t end) {
    C peak = max_of(logits + begin * classes, classes);
    for (int64_t r = begin; r < end; ++r) {
      const T* const row = logits + r * classes;
      const T* const next = r + 1 < end ? row + classes : row;
      C next_peak;
      const double sum = sum_beside_max(row, next, classes, peak, next_peak);
      const double log_sum = static_cast<double>(peak) + std::log(sum);
      lse[r] = static_cast<C>(log_sum);
      const int64_t target = integer_of(targets, r);
      losses[r] = target == ignored ? 0 : log_sum - static_cast<double>(widen(row[target]));
      peak = next_peak;
    }
  });

  double sum = 0, count = 0;
  for (int64_t r = 0; r < rows; ++r) {
    if (integer_of(targets, r) == ignored) continue;
    const double weight = weights == nullptr ? 1 : static_cast<double>(widen(weights[r]));
    sum += weight * losses[r];
    count += weight;
  }
  *call.out[0].as<double>() = sum;
  *call.out[1].as<double>() = count;
}

template <class T>
void cross_entropy_backward_of(const Call& call) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const logits = call.in[0].as<const T>();
  const Operand& targets = call.in[1];
  const C* const lse = call.in[2].as<const C>();
  const double dsum = *call.in[3].as<const double>();
  const T* const weights = call.in.size() > 4 ? call.in[4].as<const T>() : nullptr;
  T* const dlogits = call.out[0].as<T>();
  const int64_t ignored = call.attrs->integer("ignore_index");
  const int64_t classes = call.in[0].shape.last(), rows = targets.elements();
  check_targets("cross_entropy_backward", targets, ignored, classes);

  call.workers->run_range(rows, rows_per_task(classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* const row = logits + r * classes;
      T* const drow = dlogits + r * classes;
      const int64_t target = integer_of(targets, r);
      if (target == ignored) {
        std::memset(drow, 0, static_cast<size_t>(classes) * sizeof(T));
        continue;
      }
      const double seed = weights == nullptr ? dsum : dsum * static_cast<double>(widen(weights[r]));
      const B scale(static_cast<C>(seed)), shift(lse[r]);
      each_vector<C>(classes,
                     [&](int64_t i, int64_t count) { store_part(drow + i, scale * exp_of(load_part(row + i, count) - shift), count); });
      // At the target the difference is taken in double: there e^(x - lse) may be close to 1.
      const double p = std::exp(static_cast<double>(widen(row[target])) - static_cast<double>(lse[r]));
      drow[target] = narrow<T>(static_cast<C>(seed * (p - 1)));
    }
  });
}

int64_t workspace_of_cross_entropy(std::span<const Type> in, std::span<const Type>, const Attrs&, int) {
  return in[1].shape.elements() * static_cast<int64_t>(sizeof(double));
}

void run_cross_entropy(const Call& call) {
  with_float("cross_entropy", call.in[0].dtype, [&](auto t) { cross_entropy_of<decltype(t)>(call); });
}

void run_cross_entropy_backward(const Call& call) {
  with_float("cross_entropy_backward", call.in[0].dtype, [&](auto t) { cross_entropy_backward_of<decltype(t)>(call); });
}

}  // namespace

const Kernel kernel_cross_entropy = {run_cross_entropy, workspace_of_cross_entropy};
const Kernel kernel_cross_entropy_backward = {run_cross_entropy_backward, nullptr};

}  // namespace st::cpu::ST_ISA

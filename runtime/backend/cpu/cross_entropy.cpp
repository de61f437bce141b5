// sum = sum_r w_r (lse_r - logits[r, target_r]), lse = max + log sum e^(x - max). A row is read for its maximum during the sum of the
// previous row, and then, from the cache, for its sum. Backward recomputes both and writes dlogits once: w dsum (e^(x - max) / sum - [c =
// target]); e^(x - lse) would carry the rounding of lse, which grows with an offset common to all logits. When fused, a row's dlogits are
// written while the row is in the cache, often over it. With smoothing s and a z-loss z a row's loss is lse - (1 - s) x_target - s mean(x)
// + z lse^2 and its gradient softmax (1 + 2 z lse) - (1 - s) [c = target] - s / V.
#include <cmath>
#include <optional>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scalar.h"
#include "backend/cpu/vector_exp.h"
#include "backend/index_check.h"

namespace st::cpu::ST_ISA {
namespace {

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
struct Terms {
  explicit Terms(const Attrs& attrs) : smoothing(attrs.real("label_smoothing")), z_loss(attrs.real("z_loss")) {}
  /// The factor of the softmax in the gradient. Without a z-loss lse may be infinite.
  double share(double lse) const { return z_loss == 0 ? 1 : 1 + 2 * z_loss * lse; }
  double square(double lse) const { return z_loss == 0 ? 0 : z_loss * lse * lse; }

  double smoothing, z_loss;
};

/// A row's largest logit and sum e^(x - peak).
template <class C>
struct Softmax {
  C peak;
  double sum;
  double log_sum() const { return static_cast<double>(peak) + std::log(sum); }
};

/// Writes a row of dlogits, possibly over the row of logits; zero if the target is ignored. `seed` is w dsum.
template <class T, class R>
[[gnu::noinline]] void write_gradient(const T* row, void* to, int64_t classes, std::optional<int64_t> target, double seed,
                                      const Softmax<Compute<T>>& softmax, const Terms& terms) {
  using C = Compute<T>;
  using B = Batch<C>;
  R* const drow = static_cast<R*>(to);
  if (!target) {
    std::memset(drow, 0, static_cast<size_t>(classes) * sizeof(R));
    return;
  }
  // At the target the difference is computed in double, since the softmax may be close to 1.
  const double p = std::exp(static_cast<double>(widen(row[*target])) - static_cast<double>(softmax.peak)) / softmax.sum;
  const double share = terms.share(softmax.log_sum()), even = terms.smoothing / static_cast<double>(classes);
  const B scale(static_cast<C>(seed * share / softmax.sum)), shift(softmax.peak);
  const B rest(even == 0 ? C(-0.0) : static_cast<C>(-seed * even));  // adding -0 changes nothing
  each_vector<C>(
      classes, [&](int64_t i, int64_t count) { store_part(drow + i, fma(scale, exp_of(load_part(row + i, count) - shift), rest), count); });
  drow[*target] = narrow<R>(static_cast<C>(seed * (p * share - (1 - terms.smoothing) - even)));
}

/// The inputs that both directions read.
template <class T>
struct Rows {
  Rows(std::string_view op, const Call& call, size_t weights_at)
      : logits(call.in[0].as<const T>()),
        classes(call.in[0].shape.last()),
        count(call.in[1].elements()),
        terms(*call.attrs),
        targets_(call.in[1]),
        weights_(call.in.size() > weights_at ? call.in[weights_at].as<const T>() : nullptr),
        ignored_(call.attrs->integer("ignore_index")) {
    for (int64_t r = 0; r < count; ++r)
      if (const auto t = target(r)) check_target(op, *t, r, targets_.shape, classes);
  }

  std::optional<int64_t> target(int64_t r) const {
    const int64_t target = integer_of(targets_, r);
    return target == ignored_ ? std::nullopt : std::optional(target);
  }
  double weight(int64_t r) const { return weights_ == nullptr ? 1 : static_cast<double>(widen(weights_[r])); }

  const T* const logits;
  const int64_t classes, count;
  const Terms terms;

 private:
  const Operand& targets_;
  const T* const weights_;
  const int64_t ignored_;
};

/// A row's loss without its target's term.
template <class T>
double rest_of_loss(const Rows<T>& rows, const T* row, double log_sum) {
  const double loss = log_sum + rows.terms.square(log_sum);
  const double smoothing = rows.terms.smoothing;
  return smoothing == 0 ? loss : loss - smoothing / static_cast<double>(rows.classes) * sum_of(row, rows.classes);
}

/// Where dlogits are written and in what type.
template <class T>
struct Gradient {
  std::byte* to;
  int64_t row_bytes;
  double dsum;
  decltype(&write_gradient<T, T>) write;
};

/// The loss, and if requested lse and the gradient of each row.
template <class T>
void loss_of(const Call& call, const Rows<T>& rows, Compute<T>* lse, const Gradient<T>* gradient) {
  using C = Compute<T>;
  double* const losses = reinterpret_cast<double*>(call.workspace.data());
  const int64_t classes = rows.classes;
  // A task has several rows if there are many: the maximum of all but the first overlaps with another row's sum.
  const int64_t together = std::max(rows_per_task(classes), std::clamp<int64_t>(rows.count / 64, 1, 8));
  call.workers->run_range(rows.count, together, [&](int64_t begin, int64_t end) {
    C peak = max_of(rows.logits + begin * classes, classes);
    for (int64_t r = begin; r < end; ++r) {
      const T* const row = rows.logits + r * classes;
      const T* const next = r + 1 < end ? row + classes : row;
      C next_peak;
      const double sum = sum_and_next_max(row, next, classes, peak, next_peak);
      const Softmax<C> softmax{peak, sum};
      const double log_sum = softmax.log_sum();
      const auto target = rows.target(r);
      losses[r] = target ? rest_of_loss(rows, row, log_sum) - (1 - rows.terms.smoothing) * static_cast<double>(widen(row[*target])) : 0;
      if (lse != nullptr) lse[r] = static_cast<C>(log_sum);
      if (gradient != nullptr) {
        const double seed = gradient->dsum * rows.weight(r);
        gradient->write(row, gradient->to + r * gradient->row_bytes, classes, target, seed, softmax, rows.terms);
      }
      peak = next_peak;
    }
  });

  double sum = 0, count = 0;
  for (int64_t r = 0; r < rows.count; ++r) {
    if (!rows.target(r)) continue;
    sum += rows.weight(r) * losses[r];
    count += rows.weight(r);
  }
  *call.out[0].as<double>() = sum;
  *call.out[1].as<double>() = count;
}

template <class T>
void cross_entropy_of(const Call& call) {
  loss_of<T>(call, {"cross_entropy", call, 2}, call.out[2].as<Compute<T>>(), nullptr);
}

template <class T>
void cross_entropy_backward_of(const Call& call) {
  const Rows<T> rows("cross_entropy_backward", call, 4);
  const double dsum = *call.in[3].as<const double>();
  T* const dlogits = call.out[0].as<T>();
  call.workers->run_range(rows.count, rows_per_task(rows.classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* const row = rows.logits + r * rows.classes;
      Compute<T> peak = max_of(row, rows.classes), unused;
      const double sum = sum_and_next_max(row, row, rows.classes, peak, unused);
      write_gradient<T, T>(row, dlogits + r * rows.classes, rows.classes, rows.target(r), dsum * rows.weight(r), {peak, sum}, rows.terms);
    }
  });
}

void run_cross_entropy(const Call& call) {
  with_float("cross_entropy", call.in[0].dtype, [&](auto t) { cross_entropy_of<decltype(t)>(call); });
}

void run_cross_entropy_backward(const Call& call) {
  with_float("cross_entropy_backward", call.in[0].dtype, [&](auto t) { cross_entropy_backward_of<decltype(t)>(call); });
}

void run_fused_cross_entropy(const Call& call) {
  const Operand& dlogits = call.out[2];
  const Rows<float> rows("cross_entropy", call, 3);
  const Gradient<float> gradient = {
      .to = dlogits.as<std::byte>(),
      .row_bytes = rows.classes * bytes_of(dlogits.dtype),
      .dsum = *call.in[2].as<const double>(),
      .write = dlogits.dtype == DType::f32    ? write_gradient<float, float>
               : dlogits.dtype == DType::bf16 ? write_gradient<float, bf16>
                                              : write_gradient<float, f16>,
  };
  loss_of<float>(call, rows, nullptr, &gradient);
}

}  // namespace

const Kernel kernel_cross_entropy = {run_cross_entropy};
const Kernel kernel_cross_entropy_backward = {run_cross_entropy_backward};
const Kernel kernel_fused_cross_entropy = {run_fused_cross_entropy};

}  // namespace st::cpu::ST_ISA

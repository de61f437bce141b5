// sum = sum_r w_r (lse_r - logits[r, target_r]), lse = max + log sum e^(x - max). A row is read for its maximum during the sum of the
// previous row, and then, from the cache, for its sum. Backward recomputes both and writes dlogits once: w dsum (e^(x - max) / sum - [c =
// target]); e^(x - lse) would carry the rounding of lse, which grows with an offset common to all logits. When fused, a row's dlogits are
// written while the row is in the cache, often over it. With smoothing s and a z-loss z a row's loss is lse - (1 - s) x_target - s mean(x)
// + z lse^2 and its gradient softmax (1 + 2 z lse) - (1 - s) [c = target] - s / V.
#include "backend/cpu/class_rows.h"
#include "backend/cpu/kernels.h"

namespace st::cpu::ST_ISA {
namespace {

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
void loss_of(const Call& call, const LossRows<T>& rows, Compute<T>* lse, const Gradient<T>* gradient) {
  double* const losses = reinterpret_cast<double*>(pointer_to(call.workspace));
  each_softmax(call, rows, [&](int64_t r, const T* row, const RowSoftmax<Compute<T>>& softmax) {
    const double log_sum = softmax.log_sum();
    const auto target = rows.target(r);
    const double logits = target && rows.terms.smoothing != 0 ? sum_of(row, rows.classes) : 0;
    losses[r] = target ? rows.terms.loss(log_sum, static_cast<double>(widen(row[*target])), logits) : 0;
    if (lse != nullptr) lse[r] = static_cast<Compute<T>>(log_sum);
    if (gradient == nullptr) return;
    const double seed = gradient->dsum * rows.weight(r);
    gradient->write(row, gradient->to + r * gradient->row_bytes, rows.classes, target, seed, softmax, rows.terms);
  });
  rows.add_up(call, losses);
}

template <class T>
void cross_entropy_of(const Call& call) {
  loss_of<T>(call, {"cross_entropy", call, 2}, as<Compute<T>>(call.out[2]), nullptr);
}

template <class T>
void cross_entropy_backward_of(const Call& call) {
  const LossRows<T> rows("cross_entropy_backward", call, 4);
  const double dsum = *as<const double>(call.in[3]);
  T* const dlogits = as<T>(call.out[0]);
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
  const LossRows<float> rows("cross_entropy", call, 3);
  const Gradient<float> gradient = {
      .to = as<std::byte>(dlogits),
      .row_bytes = rows.classes * bytes_of(dlogits.dtype),
      .dsum = *as<const double>(call.in[2]),
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

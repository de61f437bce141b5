// y = largest of x over axes, NaN if there is one; exact, so the order does not matter
#include "backend/cpu/reduce_axes.h"

namespace st::cpu::ST_ISA {
namespace {

template <class T>
void max_axes(const Call& call, const MergedAxes& axes) {
  using C = Compute<T>;
  using B = Batch<C>;
  constexpr C lowest = -std::numeric_limits<C>::infinity();
  const T* const x = as<const T>(call.in[0]);
  T* const y = as<T>(call.out[0]);
  const int64_t n = axes.gone, inner = axes.inner;
  if (!axes.regular) {
    call.workers->run_range(axes.kept(), rows_per_task(axes.removed), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        C best = lowest;
        axes.each(k, [&](int64_t at) {
          const C v = widen(x[at]);
          best = v > best || v != v ? v : best;
        });
        y[k] = narrow<T>(best);
      }
    });
  } else if (inner == 1) {
    call.workers->run_range(axes.outer, rows_per_task(n), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) y[k] = narrow<T>(max_of(x + k * n, n));
    });
  } else {
    const int64_t vectors = (inner + kLanes<C> - 1) / kLanes<C>;
    call.workers->run_range(axes.outer * vectors, rows_per_task(n * kLanes<C>), [&](int64_t begin, int64_t end) {
      for (int64_t v = begin; v < end; ++v) {
        const int64_t c = v % vectors * kLanes<C>, count = std::min(kLanes<C>, inner - c);
        const T* const from = x + v / vectors * n * inner + c;
        B best(lowest);
        for (int64_t r = 0; r < n; ++r) {
          const B row = load_part(from + r * inner, count);
          best = xsimd::select((row > best) | xsimd::isnan(row), row, best);
        }
        store_part(y + v / vectors * inner + c, best, count);
      }
    });
  }
}

void run_max(const Call& call) {
  const MergedAxes axes("max", call.in[0].shape, call.attrs->ints("axes"));
  with_float("max", call.in[0].dtype, [&](auto t) { max_axes<decltype(t)>(call, axes); });
}

}  // namespace

const Kernel kernel_max = {run_max};

}  // namespace st::cpu::ST_ISA

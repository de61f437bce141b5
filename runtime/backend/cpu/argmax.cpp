// Index of the first largest element along an axis; NaN is larger than anything, so the first NaN wins.
#include "backend/cpu/lines.h"

namespace st::cpu::ST_ISA {
namespace {

template <class T>
int32_t first_largest(const T* x, int64_t n, int64_t step) {
  auto best = widen(x[0]);
  int64_t at = 0;
  for (int64_t i = 1; i < n && best == best; ++i) {
    const auto v = widen(x[i * step]);
    if (v > best || v != v) {
      best = v;
      at = i;
    }
  }
  return static_cast<int32_t>(at);
}

/// For a row: its maximum with vectors, then the first element that equals it.
template <class T>
int32_t first_largest_of_row(const T* x, int64_t n) {
  const auto best = max_of(x, n);
  int64_t i = 0;
  while (i < n && widen(x[i]) != best && (best == best || widen(x[i]) == widen(x[i]))) ++i;
  return static_cast<int32_t>(i);
}

template <class T>
void argmax_of(const Call& call) {
  const Shape& shape = call.in[0].shape;
  const Lines lines(shape, normalize_axis("argmax", call.attrs->integer("axis"), shape.rank()));
  const T* const x = as<const T>(call.in[0]);
  int32_t* const y = as<int32_t>(call.out[0]);
  call.workers->run_range(lines.outer * lines.inner, rows_per_task(lines.size), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const T* const line = x + k / lines.inner * lines.size * lines.inner + k % lines.inner;
      y[k] = lines.inner == 1 ? first_largest_of_row(line, lines.size) : first_largest(line, lines.size, lines.inner);
    }
  });
}

void run_argmax(const Call& call) {
  with_float("argmax", call.in[0].dtype, [&](auto t) { argmax_of<decltype(t)>(call); });
}

}  // namespace

const Kernel kernel_argmax = {run_argmax};

}  // namespace st::cpu::ST_ISA

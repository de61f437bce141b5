// y = e^(x - max) / sum e^(x - max) along an axis; dx = y (dy - sum y dy)
#include "backend/cpu/lines.h"
#include "backend/cpu/vector_exp.h"

namespace st::cpu::ST_ISA {
namespace {

template <class T>
void softmax_of(const Call& call, const Lines& lines) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const x = as<const T>(call.in[0]);
  T* const y = as<T>(call.out[0]);
  const int64_t n = lines.size, step = lines.inner;

  const auto row = [&](int64_t at) {
    const B peak(max_of(x + at, n));
    const auto term = [&](int64_t i, int64_t count) {
      const B e = exp_of(load_part(x + at + i, count, -std::numeric_limits<C>::infinity()) - peak);
      if constexpr (!kIsHalf<T>) store_part(y + at + i, e, count);
      return std::array{e};
    };
    const B scale(static_cast<C>(1 / sum_blocks<C, 1>(n, term)[0]));
    each_vector<C>(n, [&](int64_t i, int64_t count) {
      // 16 bits are too few for the numerators, so they are recomputed.
      const B e = kIsHalf<T> ? B(exp_of(load_part(x + at + i, count) - peak)) : load_part(y + at + i, count);
      store_part(y + at + i, e * scale, count);
    });
  };
  const auto column = [&](int64_t at, int64_t count) {
    B peak(-std::numeric_limits<C>::infinity());
    for (int64_t i = 0; i < n; ++i) {
      const B v = load_part(x + at + i * step, count);
      peak = xsimd::select((v > peak) | xsimd::isnan(v), v, peak);
    }
    LaneSum<C> sum;
    for (int64_t i = 0; i < n; ++i) sum.add(exp_of(load_part(x + at + i * step, count) - peak));
    for (int64_t i = 0; i < n; ++i) {
      const B e = exp_of(load_part(x + at + i * step, count) - peak);
      store_part(y + at + i * step, e / sum.sum, count);
    }
  };
  each_line<C>(*call.workers, lines, row, column);
}

template <class T>
void softmax_backward_of(const Call& call, const Lines& lines) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const y = as<const T>(call.in[0]);
  const T* const dy = as<const T>(call.in[1]);
  T* const dx = as<T>(call.out[0]);
  const int64_t n = lines.size, step = lines.inner;

  const auto row = [&](int64_t at) {
    const auto term = [&](int64_t i, int64_t count) { return std::array{B(load_part(y + at + i, count) * load_part(dy + at + i, count))}; };
    const B sum(static_cast<C>(sum_blocks<C, 1>(n, term)[0]));
    each_vector<C>(n, [&](int64_t i, int64_t count) {
      store_part(dx + at + i, load_part(y + at + i, count) * (load_part(dy + at + i, count) - sum), count);
    });
  };
  const auto column = [&](int64_t at, int64_t count) {
    LaneSum<C> sum;
    for (int64_t i = 0; i < n; ++i) sum.add(load_part(y + at + i * step, count) * load_part(dy + at + i * step, count));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t p = at + i * step;
      store_part(dx + p, load_part(y + p, count) * (load_part(dy + p, count) - sum.sum), count);
    }
  };
  each_line<C>(*call.workers, lines, row, column);
}

Lines lines_of_softmax(const Call& call) {
  const Shape& shape = call.in[0].shape;
  return {shape, normalize_axis("softmax", call.attrs->integer("axis"), shape.rank())};
}

void run_softmax(const Call& call) {
  with_float("softmax", call.out[0].dtype, [&](auto t) { softmax_of<decltype(t)>(call, lines_of_softmax(call)); });
}

void run_softmax_backward(const Call& call) {
  with_float("softmax_backward", call.out[0].dtype, [&](auto t) { softmax_backward_of<decltype(t)>(call, lines_of_softmax(call)); });
}

}  // namespace

const Kernel kernel_softmax = {run_softmax};
const Kernel kernel_softmax_backward = {run_softmax_backward};

}  // namespace st::cpu::ST_ISA

// y = x - max - log sum e^(x - max) along an axis; dx = dy - e^y sum dy
#include <cmath>

#include "backend/cpu/lines.h"
#include "backend/cpu/vector_exp.h"

namespace st::cpu::ST_ISA {
namespace {

template <class T>
void log_softmax_of(const Call& call, const Lines& lines) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const x = as<const T>(call.in[0]);
  T* const y = as<T>(call.out[0]);
  const int64_t n = lines.size, step = lines.inner;

  const auto row = [&](int64_t at) {
    const B peak(max_of(x + at, n));
    const auto term = [&](int64_t i, int64_t count) {
      return std::array{B(exp_of<C>(load_part(x + at + i, count, -std::numeric_limits<C>::infinity()) - peak))};
    };
    const B log_sum(static_cast<C>(std::log(sum_blocks<C, 1>(n, term)[0])));
    each_vector<C>(n, [&](int64_t i, int64_t count) { store_part(y + at + i, load_part(x + at + i, count) - peak - log_sum, count); });
  };
  const auto column = [&](int64_t at, int64_t count) {
    B peak(-std::numeric_limits<C>::infinity());
    for (int64_t i = 0; i < n; ++i) {
      const B v = load_part(x + at + i * step, count);
      peak = xsimd::select((v > peak) | xsimd::isnan(v), v, peak);
    }
    LaneSum<C> sum;
    for (int64_t i = 0; i < n; ++i) sum.add(exp_of(load_part(x + at + i * step, count) - peak));
    const B log_sum = xsimd::log(sum.sum);
    for (int64_t i = 0; i < n; ++i) store_part(y + at + i * step, load_part(x + at + i * step, count) - peak - log_sum, count);
  };
  each_line<C>(*call.workers, lines, row, column);
}

template <class T>
void log_softmax_backward_of(const Call& call, const Lines& lines) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const y = as<const T>(call.in[0]);
  const T* const dy = as<const T>(call.in[1]);
  T* const dx = as<T>(call.out[0]);
  const int64_t n = lines.size, step = lines.inner;
  const auto put = [&](int64_t p, int64_t count, const B& sum) {
    store_part(dx + p, load_part(dy + p, count) - exp_of(load_part(y + p, count)) * sum, count);
  };

  const auto row = [&](int64_t at) {
    const B sum(static_cast<C>(sum_of(dy + at, n)));
    each_vector<C>(n, [&](int64_t i, int64_t count) { put(at + i, count, sum); });
  };
  const auto column = [&](int64_t at, int64_t count) {
    LaneSum<C> sum;
    for (int64_t i = 0; i < n; ++i) sum.add(load_part(dy + at + i * step, count));
    for (int64_t i = 0; i < n; ++i) put(at + i * step, count, sum.sum);
  };
  each_line<C>(*call.workers, lines, row, column);
}

Lines lines_of_log_softmax(const Call& call) {
  const Shape& shape = call.in[0].shape;
  return {shape, normalize_axis("log_softmax", call.attrs->integer("axis"), shape.rank())};
}

void run_log_softmax(const Call& call) {
  with_float("log_softmax", call.out[0].dtype, [&](auto t) { log_softmax_of<decltype(t)>(call, lines_of_log_softmax(call)); });
}

void run_log_softmax_backward(const Call& call) {
  with_float("log_softmax_backward", call.out[0].dtype,
             [&](auto t) { log_softmax_backward_of<decltype(t)>(call, lines_of_log_softmax(call)); });
}

}  // namespace

const Kernel kernel_log_softmax = {run_log_softmax};
const Kernel kernel_log_softmax_backward = {run_log_softmax_backward};

}  // namespace st::cpu::ST_ISA

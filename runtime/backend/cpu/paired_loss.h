// Losses over pairs (x, target) of one shape: sum = sum w f(x, t), count = sum w, and dx = dsum w f'(x, t). A loss is two functors on
// vectors. Tasks of kGrain elements write their sums to the workspace; these are added in order.
#pragma once

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"

namespace st::cpu::ST_ISA {

/// sum w f(x, t) element by element, for terms that fp32 cannot represent.
template <class T, class Loss>
[[gnu::noinline]] double loss_in_double(const T* x, const T* target, const T* weights, int64_t n, const Loss& loss) {
  const auto wide = [](T element) { return F64(static_cast<double>(widen(element))); };
  alignas(64) double lanes[F64::size];
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    F64(loss(wide(x[i]), wide(target[i]))).store_aligned(lanes);
    sum += (weights == nullptr ? 1 : static_cast<double>(widen(weights[i]))) * lanes[0];
  }
  return sum;
}

template <class T, class Loss>
void paired_loss_of(const Call& call, const Loss& loss) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const x = as<const T>(call.in[0]);
  const T* const target = as<const T>(call.in[1]);
  const T* const weights = call.in.size() > 2 ? as<const T>(call.in[2]) : nullptr;
  const int64_t n = call.in[0].elements();
  double* const partial = reinterpret_cast<double*>(pointer_to(call.workspace));  // [tasks][sum, count]

  call.workers->run_range(n, kGrain, [&](int64_t begin, int64_t end) {
    double* const mine = partial + begin / kGrain * 2;
    const auto give = [&](double sum, double counted) {
      const T* const own_weights = weights == nullptr ? nullptr : weights + begin;
      mine[0] = std::isfinite(sum) ? sum : loss_in_double(x + begin, target + begin, own_weights, end - begin, loss);
      mine[1] = std::isfinite(counted) ? counted : sum_in_double(own_weights, end - begin);
    };
    // Missing lanes have weight 0 and the loss of (0, 0), which is finite.
    const auto value = [&](int64_t i, int64_t count) {
      return B(loss(load_part(x + begin + i, count), load_part(target + begin + i, count)));
    };
    if (weights != nullptr) {
      const auto sums = sum_blocks<C, 2>(end - begin, [&](int64_t i, int64_t count) {
        const B w = load_part(weights + begin + i, count);
        return std::array{B(w * value(i, count)), w};
      });
      return give(sums[0], sums[1]);
    }
    alignas(64) C ones[B::size];
    std::fill(ones, ones + B::size, C(1));
    give(
        sum_blocks<C, 1>(end - begin, [&](int64_t i, int64_t count) { return std::array{B(load_part(ones, count) * value(i, count))}; })[0],
        static_cast<double>(end - begin));
  });

  double sum = 0, count = 0;
  for (int64_t task = 0; task * kGrain < n; ++task) {
    sum += partial[2 * task];
    count += partial[2 * task + 1];
  }
  *as<double>(call.out[0]) = sum;
  *as<double>(call.out[1]) = count;
}

/// dx = dsum w kFactor slope(x, t). A slope's constant factor is applied to the seed, which is small for a mean.
template <class T, class Slope>
void paired_loss_backward_of(const Call& call, const Slope& slope) {
  using C = Compute<T>;
  using B = Batch<C>;
  const T* const x = as<const T>(call.in[0]);
  const T* const target = as<const T>(call.in[1]);
  const T* const weights = call.in.size() > 3 ? as<const T>(call.in[3]) : nullptr;
  T* const dx = as<T>(call.out[0]);
  const B seed(static_cast<C>(Slope::kFactor * *as<const double>(call.in[2])));

  call.workers->run_range(call.in[0].elements(), kGrain, [&](int64_t begin, int64_t end) {
    each_vector<C>(end - begin, [&](int64_t i, int64_t count) {
      const int64_t at = begin + i;
      const B d = slope(load_part(x + at, count), load_part(target + at, count));
      store_part(dx + at, (weights == nullptr ? seed : seed * load_part(weights + at, count)) * d, count);
    });
  });
}

template <class Loss>
void paired_loss(std::string_view op, const Call& call, const Loss& loss) {
  with_float(op, call.in[0].dtype, [&](auto t) { paired_loss_of<decltype(t)>(call, loss); });
}

template <class Slope>
void paired_loss_backward(std::string_view op, const Call& call, const Slope& slope) {
  with_float(op, call.in[0].dtype, [&](auto t) { paired_loss_backward_of<decltype(t)>(call, slope); });
}

}  // namespace st::cpu::ST_ISA

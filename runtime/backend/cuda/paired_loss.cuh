// Losses over pairs (x, target) of one shape: sum = sum w f(x, t), count = sum w, and dx = dsum w f'(x, t). f is computed in fp32 (fp64 for
// f64), and in fp64 where fp32 cannot represent it; sums are fp64. A block has 4096 elements, and adds them in an order of its own; blocks
// are added by pair_sums.h.
#pragma once

#include <cmath>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/block_reduce.cuh"
#include "backend/cuda/doubles.cuh"
#include "backend/cuda/exp_log.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/paired_loss_work.h"
#include "backend/cuda/vectors.cuh"
#include "ir/op.h"

namespace st::cuda {

/// f(x, t) of mse, huber and bce_with_logits.
struct PairedLoss {
  Op op;
  double delta;  // of huber

  template <class C>
  DEVICE C value(C x, C target) const {
    switch (op) {
      case Op::mse: {
        const C d = x - target;
        return d * d;
      }
      case Op::huber: {
        const C d = x - target, size = magnitude(d), edge = static_cast<C>(delta);
        return size <= edge ? C(0.5) * d * d : edge * (size - C(0.5) * edge);
      }
      default: {                                 // bce_with_logits
        const C positive = x < C(0) ? C(0) : x;  // NaN stays
        return positive - x * target + logarithm_of_1_plus(exponential(-magnitude(x)));
      }
    }
  }
  /// f'(x, t) without the factor of the seed.
  template <class C>
  DEVICE C slope(C x, C target) const {
    switch (op) {
      case Op::mse_backward:
        return x - target;
      case Op::huber_backward: {
        const C d = x - target, edge = static_cast<C>(delta);
        return d > edge ? edge : d < -edge ? -edge : d;
      }
      default:
        return C(1) / (C(1) + exponential(-x)) - target;
    }
  }
};

constexpr int kPairedVector = 4;
static_assert(kPairedBlock % (kBlock * kPairedVector) == 0);

/// w f(x, t) in fp64: of f in C if that represents both.
template <class C>
DEVICE double term_of(const PairedLoss& loss, C x, C target, C weight) {
  const C term = loss.value(x, target);
  const bool is_within = magnitude(term * weight) < static_cast<C>(INFINITY);
  return static_cast<double>(weight) *
         (is_within ? static_cast<double>(term) : loss.value(static_cast<double>(x), static_cast<double>(target)));
}

template <int kEach, class T>
DEVICE void add_terms(double (&sums)[2], const PairedLoss& loss, const T* x, const T* target, const T* weights, int64_t at) {
  const auto xs = load_vector<Vector<T, kEach>>(x + at), targets = load_vector<Vector<T, kEach>>(target + at);
  Vector<T, kEach> own_weights{};
  if (weights != nullptr) own_weights = load_vector<Vector<T, kEach>>(weights + at);
  for (int i = 0; i < kEach; ++i) {
    const Compute<T> weight = weights == nullptr ? Compute<T>(1) : widen(own_weights.at[i]);
    sums[0] += term_of(loss, widen(xs.at[i]), widen(targets.at[i]), weight);
    sums[1] += static_cast<double>(weight);
  }
}

/// `weights`: null, or of each element. `pairs`: what the block adds to the sum and to the count.
template <class T>
KERNEL(kBlock)
sum_paired_loss(PairedLoss loss, const T* x, const T* target, const T* weights, int64_t elements, double* pairs) {
  const int64_t first = int64_t{block_index()} * kPairedBlock;
  double sums[2] = {};
  for (int i = 0; i < kPairedBlock; i += kBlock * kPairedVector) {
    const int64_t at = first + i + thread_index() * kPairedVector;
    if (at + kPairedVector <= elements)
      add_terms<kPairedVector>(sums, loss, x, target, weights, at);
    else
      for (int64_t k = at; k < elements; ++k) add_terms<1>(sums, loss, x, target, weights, k);
  }
  reduce_over<kBlock>(sums, Sum{});
  if (thread_index() < 2) pairs[2 * int64_t{block_index()} + thread_index()] = thread_index() == 0 ? sums[0] : sums[1];
}

template <class T>
KERNEL(kBlock)
slope_paired_loss(PairedLoss loss, double factor, const double* dsum, const T* x, const T* target, const T* weights, T* dx,
                  int64_t elements) {
  using C = Compute<T>;
  const C seed = static_cast<C>(flushed(times(factor, *dsum)));
  const int64_t first = (int64_t{block_index()} * kBlock + thread_index()) * kPairedVector;
  const bool is_whole = first + kPairedVector <= elements;
  Vector<T, kPairedVector> xs{}, targets{}, own_weights{}, made;
  if (is_whole) {
    xs = load_vector<Vector<T, kPairedVector>>(x + first);
    targets = load_vector<Vector<T, kPairedVector>>(target + first);
    if (weights != nullptr) own_weights = load_vector<Vector<T, kPairedVector>>(weights + first);
  } else {
    for (int i = 0; i < kPairedVector; ++i) {
      if (first + i >= elements) break;
      xs.at[i] = x[first + i];
      targets.at[i] = target[first + i];
      if (weights != nullptr) own_weights.at[i] = weights[first + i];
    }
  }
  C slopes[kPairedVector];
  for (int i = 0; i < kPairedVector; ++i)
    slopes[i] = times(weights == nullptr ? seed : times(seed, widen(own_weights.at[i])), loss.slope(widen(xs.at[i]), widen(targets.at[i])));
  for (int i = 0; i < kPairedVector; i += 2) narrow_pair(made.at + i, slopes[i], slopes[i + 1]);
  if (is_whole) return store_vector(dx + first, made);
  for (int i = 0; i < kPairedVector; ++i)
    if (first + i < elements) dx[first + i] = made.at[i];
}

}  // namespace st::cuda

// Rows of logits of cross_entropy, its gradient, and the same over ranks that share the classes. A block has a row, and reads it once from
// memory: each thread takes groups of 4 neighbours and keeps their largest and sum e^(x - largest), which is scaled when a larger one
// comes. A gradient reads the row again, from the cache, and writes it once, possibly over the logits. Sums are fp64, in an order that
// depends on the number of columns only, so that an op and the ops it is made from have the same bits.
//   softmax   peak = max x, sum = sum e^(x - peak): e^(x - lse) would carry the rounding of lse
//   loss      lse + z lse^2 - s mean(x) - (1 - s) x_target, lse = peak + log sum
//   gradient  w dsum (e^(x - peak) / sum (1 + 2 z lse) - (1 - s) [c = target] - s / V)
#pragma once

#include <cmath>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/block_reduce.cuh"
#include "backend/cuda/doubles.cuh"
#include "backend/cuda/exp_log.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/index_faults.cuh"
#include "backend/cuda/indices.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

constexpr int kLossGroup = 4;
/// The most threads of a block: fewer for f64, whose rows need more registers.
template <class T>
constexpr int kMostLossThreads = sizeof(T) == 8 ? kBlock : 1024;

/// Threads of a row's block. Large rows have large blocks, so that few rows are read at a time: the second read of a row is then a cache
/// hit.
template <class T>
int loss_threads(int64_t columns) {
  return columns <= 1024 ? kLanes : columns <= 16384 ? kBlock : kMostLossThreads<T>;
}

/// Terms added to the target's likelihood.
struct LossTerms {
  double smoothing, even, z_loss;  // even: the smoothing's share of a class

  /// The factor of the softmax in the gradient. Without a z-loss lse may be infinite.
  DEVICE double share(double lse) const { return z_loss == 0 ? 1 : 1 + 2 * z_loss * lse; }
  /// `logits`: their sum over the classes.
  DEVICE double loss(double lse, double target, double logits) const {
    const double rest = z_loss == 0 ? lse : lse + z_loss * lse * lse;
    return (smoothing == 0 ? rest : rest - even * logits) - (1 - smoothing) * target;
  }
};

/// The columns of the logits are those of `classes` from `first` on.
struct LossClasses {
  int64_t ignored, first, classes, columns;
};

/// The column of a row's target, outside 0..columns-1 if another rank has it.
struct LossTarget {
  bool counts;  // not if it is to be ignored, or reported
  int64_t column;

  DEVICE LossTarget(const IndexFaults& faults, const Indices& targets, const LossClasses& of, int64_t row, bool reports) {
    const int64_t target = targets[row];
    counts = target != of.ignored && target >= 0 && target < of.classes;
    column = target - of.first;
    if (reports && target != of.ignored && !counts) report(faults, row, target);
  }
  DEVICE bool is_among(int64_t columns) const { return counts && column >= 0 && column < columns; }
};

DEVICE float product_plus(float x, float y, float z) { return fmaf(x, y, z); }
DEVICE double product_plus(double x, double y, double z) { return flushed(fma(x, y, z)); }

template <class C>
struct RowSoftmax {
  C peak;
  double sum;
  double logits;  // the sum of all, if wanted

  DEVICE double log_sum() const { return static_cast<double>(peak) + log(sum); }
};

/// Calls body(first column, elements, how many of kLossGroup there are) for a thread's groups of a row. Which thread has a column depends
/// on neither the row nor its alignment.
template <class T, class Body>
DEVICE void each_group(const T* row, int64_t columns, const Body& body) {
  const bool is_aligned = reinterpret_cast<uintptr_t>(row) % alignof(Vector<T, kLossGroup>) == 0;
  for (int64_t at = int64_t{thread_index()} * kLossGroup; at < columns; at += int64_t{block_threads()} * kLossGroup) {
    const int count = columns - at < kLossGroup ? static_cast<int>(columns - at) : kLossGroup;
    Vector<T, kLossGroup> group{};
    if (is_aligned && count == kLossGroup) {
      group = load_vector<Vector<T, kLossGroup>>(row + at);
    } else {
      for (int i = 0; i < kLossGroup; ++i)
        if (i < count) group.at[i] = row[at + i];
    }
    body(at, group, count);
  }
}

/// Reduces a value over all threads of the block.
template <class T, class Combine>
DEVICE T reduce_over_row(T value, const Combine& combine) {
  SHARED(T, of_warps, kMostLossThreads<float> / kLanes);
  T values[1] = {value};
  reduce_over_warp(values, combine);
  sync_block();  // the results before may still be read
  if (thread_index() % kLanes == 0) of_warps[thread_index() / kLanes] = values[0];
  sync_block();
  T all = of_warps[0];
  for (int warp = 1; warp < block_threads() / kLanes; ++warp) all = combine(all, of_warps[warp]);
  return all;
}

template <class T>
DEVICE RowSoftmax<Compute<T>> softmax_of(const T* row, int64_t columns, bool adds_logits) {
  using C = Compute<T>;
  constexpr C kLowest = -static_cast<C>(INFINITY);
  const Largest larger;
  RowSoftmax<C> own = {kLowest, 0, 0};
  each_group(row, columns, [&](int64_t, const Vector<T, kLossGroup>& group, int count) {
    C x[kLossGroup];
    for (int i = 0; i < kLossGroup; ++i) x[i] = i < count ? widen(group.at[i]) : kLowest;
    const C high = larger(larger(x[0], x[1]), larger(x[2], x[3]));
    if (!(high <= own.peak)) {
      const C peak = larger(own.peak, high);
      own.sum *= exp(static_cast<double>(own.peak) - static_cast<double>(peak));
      own.peak = peak;
    }
    if (own.peak != kLowest) {  // else nothing so far is possible
      C e[kLossGroup];
      for (int i = 0; i < kLossGroup; ++i) e[i] = exponential(x[i] - own.peak);
      own.sum += static_cast<double>((e[0] + e[1]) + (e[2] + e[3]));
    }
    if (adds_logits)
      for (int i = 0; i < kLossGroup; ++i)
        if (i < count) own.logits += static_cast<double>(x[i]);
  });
  RowSoftmax<C> all;
  all.peak = reduce_over_row(own.peak, larger);
  all.sum = reduce_over_row(own.sum * exp(static_cast<double>(own.peak) - static_cast<double>(all.peak)), Sum{});
  all.logits = adds_logits ? reduce_over_row(own.logits, Sum{}) : 0;
  return all;
}

template <class R, class C>
DEVICE void store_group(R* to, const C (&made)[kLossGroup], int count) {
  Vector<R, kLossGroup> group;
  for (int i = 0; i < kLossGroup; i += 2) narrow_pair(group.at + i, made[i], made[i + 1]);
  if (count == kLossGroup && reinterpret_cast<uintptr_t>(to) % alignof(Vector<R, kLossGroup>) == 0) return store_vector(to, group);
  for (int i = 0; i < kLossGroup; ++i)
    if (i < count) to[i] = group.at[i];
}

/// `seed`: w dsum; `at_target`: the target's logit, read before it may be written over.
template <class T, class R>
DEVICE void write_gradient(const T* row, R* to, int64_t columns, const LossTarget& target, double at_target, double seed,
                           const RowSoftmax<Compute<T>>& softmax, const LossTerms& terms) {
  using C = Compute<T>;
  const double share = terms.share(softmax.log_sum());
  const C scale = static_cast<C>(seed * share / softmax.sum);
  const C rest = terms.even == 0 ? static_cast<C>(-0.0) : static_cast<C>(-seed * terms.even);  // adding -0 changes nothing
  each_group(row, columns, [&](int64_t at, const Vector<T, kLossGroup>& group, int count) {
    C made[kLossGroup];
    for (int i = 0; i < kLossGroup; ++i) {
      made[i] = target.counts ? product_plus(scale, exponential(widen(group.at[i]) - softmax.peak), rest) : C(0);
      if (target.counts && at + i == target.column) {  // in fp64, since the softmax may be close to 1
        const double p = exp(at_target - static_cast<double>(softmax.peak)) / softmax.sum;
        made[i] = static_cast<C>(seed * (p * share - (1 - terms.smoothing) - terms.even));
      }
    }
    store_group(to + at, made, count);
  });
}

/// A row for each block. Results that are null are not wanted:
///   pairs    what the row adds to the sum and to the count of the loss
///   lse      log sum e^x
///   parts    vocabulary_terms of ops.def
///   dlogits  the gradient
/// `softmax`: null, or the peak and the sum of all ranks for each row. `weights`: null, or of each row.
template <class T, class R>
KERNEL(kMostLossThreads<T>)
loss_rows(IndexFaults faults, Indices targets, LossClasses of, LossTerms terms, const T* logits, const T* weights, const double* dsum,
          const double* softmax, double* pairs, Compute<T>* lse, double* parts, R* dlogits) {
  using C = Compute<T>;
  const int64_t row_index = block_index();
  const T* const row = logits + row_index * of.columns;
  const LossTarget target(faults, targets, of, row_index, thread_index() == 0);
  const double at_target = target.is_among(of.columns) ? static_cast<double>(widen(row[target.column])) : 0;
  const double weight = weights == nullptr ? 1 : static_cast<double>(widen(weights[row_index]));
  RowSoftmax<C> own;
  if (softmax == nullptr)
    own = softmax_of(row, of.columns, terms.smoothing != 0 && (pairs != nullptr || parts != nullptr));
  else
    own = {static_cast<C>(softmax[2 * row_index]), softmax[2 * row_index + 1], 0};
  if (softmax != nullptr) sync_block();  // all have read the target's logit, which may be written over
  if (thread_index() == 0) {
    if (pairs != nullptr) {
      pairs[2 * row_index] = target.counts ? weight * terms.loss(own.log_sum(), at_target, own.logits) : 0;
      pairs[2 * row_index + 1] = target.counts ? weight : 0;
    }
    if (lse != nullptr) lse[row_index] = static_cast<C>(own.log_sum());
    if (parts != nullptr) {
      double* const part = parts + 4 * row_index;
      part[0] = static_cast<double>(own.peak);
      part[1] = part[0] == -INFINITY ? 0 : own.sum;  // no class here is possible; another rank may have one
      part[2] = at_target;
      part[3] = own.logits;
    }
  }
  if (dlogits != nullptr)
    write_gradient<T, R>(row, dlogits + row_index * of.columns, of.columns, target, at_target, *dsum * weight, own, terms);
}

/// A thread adds the vocabulary_terms of all ranks of a row, in their order.
template <class T>
KERNEL(kBlock)
join_ranks(IndexFaults faults, Indices targets, LossClasses of, LossTerms terms, const double* parts, int64_t ranks, int64_t rows,
           const T* weights, double* pairs, Compute<T>* lse, double* softmax) {
  const int64_t row = int64_t{block_index()} * kBlock + thread_index();
  if (row >= rows) return;
  const LossTarget target(faults, targets, of, row, true);
  RowSoftmax<double> all = {-INFINITY, 0, 0};
  double at_target = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const double* const part = parts + (rank * rows + row) * 4;
    all.peak = all.peak < part[0] ? part[0] : all.peak;  // passes over a NaN, which the sum then has
    at_target += part[2];
    all.logits += part[3];
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const double* const part = parts + (rank * rows + row) * 4;
    all.sum += part[1] * exp(part[0] - all.peak);
  }
  const double weight = weights == nullptr ? 1 : static_cast<double>(widen(weights[row]));
  pairs[2 * row] = target.counts ? weight * terms.loss(all.log_sum(), at_target, all.logits) : 0;
  pairs[2 * row + 1] = target.counts ? weight : 0;
  lse[row] = static_cast<Compute<T>>(all.log_sum());
  softmax[2 * row] = all.peak;
  softmax[2 * row + 1] = all.sum;
}

}  // namespace st::cuda

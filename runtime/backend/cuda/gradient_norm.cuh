// The sums of backend/gradient_norm_order.h, with the cpu's bits:
//   square_blocks  the sums of squares of blocks of 1024 elements. A block's 16 lanes are those of 4 threads, 4 neighbours each, so that a
//                  thread loads vectors and a warp has 8 blocks.
//   add_trees      a block of threads adds the sums of a tensor's blocks by the balanced tree: 2048 at a time are a subtree, and such
//                  subtrees are added like the carries of a binary counter. Where there is no block a 0 is added, which changes no sum.
//   set_norm       the root of the sums of tensors, added in order
#pragma once

#include <cmath>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/fused.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/vectors.cuh"
#include "backend/gradient_norm_order.h"

namespace st::cuda {

constexpr int kSquareBlock = static_cast<int>(gradient_norm_order::kBlock), kSquareLanes = static_cast<int>(gradient_norm_order::kLanes);
constexpr int kLanesOfThread = 4, kThreadsOfBlock = kSquareLanes / kLanesOfThread;

DEVICE bool is_bounded(double x) { return fabs(x) < INFINITY; }

/// sum + x^2
DEVICE double with_square(double sum, double x) { return plus(sum, times(x, x)); }

/// A thread's lanes of `count` elements from `x` on, its own at 4 * quarter. Adding a 0 where there is no element changes no lane.
template <class T>
DEVICE void add_squares(double (&lanes)[kLanesOfThread], bool& finite, const T* x, int64_t count, int quarter) {
  for (int64_t at = quarter * kLanesOfThread; at < count; at += kSquareLanes) {
    Vector<T, kLanesOfThread> read{};
    if (at + kLanesOfThread <= count) {
      read = load_vector<Vector<T, kLanesOfThread>>(x + at);
    } else {
      for (int i = 0; i < kLanesOfThread; ++i)
        if (at + i < count) read.at[i] = x[at + i];
    }
    for (int i = 0; i < kLanesOfThread; ++i) {
      lanes[i] = with_square(lanes[i], widen(read.at[i]));
      if constexpr (sizeof(T) == 8) finite = finite && is_bounded(read.at[i]);
    }
  }
}

/// `marks`: null, or 1 for a block that is not finite.
template <class T>
KERNEL(kBlock)
square_blocks(const T* x, int64_t elements, double* sums, uint8_t* marks) {
  const int64_t thread = int64_t{block_index()} * kBlock + thread_index(), block = thread / kThreadsOfBlock;
  const int quarter = static_cast<int>(thread % kThreadsOfBlock);
  const int64_t first = block * kSquareBlock, left = elements - first;
  double lanes[kLanesOfThread] = {};
  bool finite = true;
  if (left > 0) add_squares(lanes, finite, x + first, left < kSquareBlock ? left : kSquareBlock, quarter);
  for (int apart = kThreadsOfBlock / 2; apart > 0; apart /= 2) {
    for (double& lane : lanes) lane = plus(lane, shuffle_xor(lane, apart));
    finite = shuffle_xor(finite ? 1 : 0, apart) != 0 && finite;
  }
  if (left <= 0 || quarter != 0) return;
  const double sum = plus(plus(lanes[0], lanes[2]), plus(lanes[1], lanes[3]));
  sums[block] = sum;
  if (marks != nullptr) marks[block] = finite && (sizeof(T) == 8 || is_bounded(sum)) ? 0 : 1;
}

constexpr int kSumsOfThread = 8, kSubtree = kBlock * kSumsOfThread, kNormWarps = kBlock / kLanes;
constexpr int kMostTensors = 128;  // of a launch

/// The first block and the number of blocks of each tensor.
struct TensorBlocks {
  int64_t first[kMostTensors], count[kMostTensors];
};

/// The sum of 8 neighbours of each thread over the warp.
DEVICE double add_warp(double (&own)[kSumsOfThread]) {
  for (int half = 1; half < kSumsOfThread; half *= 2)
    for (int i = 0; i < kSumsOfThread; i += 2 * half) own[i] = plus(own[i], own[i + half]);
  double sum = own[0];
  for (int lanes = 1; lanes < kLanes; lanes *= 2) sum = plus(sum, shuffle_xor(sum, lanes));
  return sum;
}

/// A block of threads for each tensor. `marks` and `tensor_marks`: as of square_blocks, null: of f64 sums that are not finite, and not
/// wanted.
KERNEL(kBlock)
add_trees(const double* sums, const uint8_t* marks, TensorBlocks tensors, double* tensor_sums, uint8_t* tensor_marks) {
  SHARED(double, of_warps, kNormWarps);
  SHARED(double, subtrees, 64);  // [k]: the sum of 2^k subtrees, where bit k of their number is set
  SHARED(int, infinite, kNormWarps);
  const int tensor = block_index(), warp = thread_index() / kLanes;
  const int64_t count = tensors.count[tensor];
  sums += tensors.first[tensor];
  int64_t added = 0;
  int finite = 1;
  for (int64_t from = 0; from < count; from += kSubtree, ++added) {
    double own[kSumsOfThread];
    for (int i = 0; i < kSumsOfThread; ++i) {
      const int64_t at = from + thread_index() * kSumsOfThread + i;
      own[i] = at < count ? sums[at] : 0;
      if (at < count && (marks == nullptr ? !is_bounded(own[i]) : marks[tensors.first[tensor] + at] != 0)) finite = 0;
    }
    const double sum = add_warp(own);
    if (thread_index() % kLanes == 0) of_warps[warp] = sum;
    sync_block();
    if (thread_index() == 0) {
      double tree[kNormWarps];
      for (int i = 0; i < kNormWarps; ++i) tree[i] = of_warps[i];
      for (int half = 1; half < kNormWarps; half *= 2)
        for (int i = 0; i < kNormWarps; i += 2 * half) tree[i] = plus(tree[i], tree[i + half]);
      int level = 0;
      for (int64_t full = added; (full & 1) != 0; full >>= 1) tree[0] = plus(subtrees[level++], tree[0]);
      subtrees[level] = tree[0];
    }
    sync_block();
  }
  for (int lanes = 1; lanes < kLanes; lanes *= 2) finite &= shuffle_xor(finite, lanes);
  if (thread_index() % kLanes == 0) infinite[warp] = 1 - finite;
  sync_block();
  if (thread_index() != 0) return;
  double sum = 0;
  bool first = true;
  for (int level = 0; level < 64; ++level) {  // the smallest is the rightmost
    if ((added >> level & 1) == 0) continue;
    sum = first ? subtrees[level] : plus(subtrees[level], sum);
    first = false;
  }
  tensor_sums[tensor] = sum;
  if (tensor_marks == nullptr) return;
  int any = 0;
  for (int i = 0; i < kNormWarps; ++i) any |= infinite[i];
  tensor_marks[tensor] = static_cast<uint8_t>(any);
}

/// One thread.
KERNEL(1)
set_norm(const double* tensor_sums, const uint8_t* tensor_marks, int64_t tensors, double* norm, uint8_t* finite) {
  double sum = 0;
  bool all = true;
  for (int64_t tensor = 0; tensor < tensors; ++tensor) {
    sum = plus(sum, tensor_sums[tensor]);
    all = all && tensor_marks[tensor] == 0;
  }
  *norm = root(sum);
  *finite = all ? 1 : 0;
}

/// One thread. step_factor of ops.def with the cpu's bits (backend/cpu/step_factor.cpp).
KERNEL(1)
set_step_factor(const double* norm, const uint8_t* finite, const double* count, double seed, double max_norm, float* factor,
                double* true_norm, uint8_t* skip) {
  const double scale = times(seed, *count), own_norm = over(*norm, scale);
  double clip = 1;
  if (max_norm != 0) {
    const double wanted = over(max_norm, plus(own_norm, 1e-6));
    clip = is_less(wanted, 1) ? wanted : 1;
  }
  const double exact = over(clip, scale);
  *factor = static_cast<float>(exact);
  *true_norm = own_norm;
  const bool is_normal = fabs(exact) >= 0x1p-126 && fabs(exact) <= 0x1.fffffep127;
  *skip = *finite != 0 && flushed(*count) != 0 && is_normal ? 0 : 1;
}

}  // namespace st::cuda

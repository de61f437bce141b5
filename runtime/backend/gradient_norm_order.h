// The order of additions in gradient_norm, shared by all backends: the same bits for any number of ranks, stages and threads.
//
//   block   1024 consecutive elements of one logical tensor (the last one may be shorter), counted from the tensor's start.
//           16 lanes: lane i adds the fp64 squares of elements i, i + 16, i + 32, ... in that order, starting from zero;
//           then lanes are halved: lane i += lane i + 8, then i + 4, i + 2, i + 1.
//   tensor  a balanced tree over its blocks: n blocks split at the largest power of two below n. This equals halving level by level, where
//           an odd last block moves up unchanged. So any aligned run of 2^k blocks is a subtree that one rank can own and send.
//   norm    square root of the sum over tensors in order, starting from zero.
//
// The square of an f32, bf16 or f16 is exact in fp64, so a fused multiply-add gives the same bits.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace st::gradient_norm_order {

constexpr int64_t kBlock = 1024;
constexpr int64_t kLanes = 16;

constexpr int64_t blocks_of(int64_t elements) { return (elements + kBlock - 1) / kBlock; }

/// Adds the lanes to the block's sum.
inline double sum_of_lanes(std::array<double, kLanes> lanes) {
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

/// Sum of squares of `n` <= 1024 elements; `element(i)` is element i of the block as double.
template <class Element>
double sum_of_block(int64_t n, Element&& element) {
  std::array<double, kLanes> lanes{};
  for (int64_t i = 0; i < n; ++i) {
    const double g = element(i);
    lanes[static_cast<size_t>(i % kLanes)] += g * g;
  }
  return sum_of_lanes(lanes);
}

/// The tree over the blocks of one tensor, fed in order; holds one partial sum per level.
class BlockTree {
 public:
  void add(double block) {
    // Like the carry of a binary counter: a full subtree of the same size on the left is the sibling.
    size_t level = 0;
    for (uint64_t count = blocks_; count & 1; count >>= 1) block = levels_[level++] + block;
    levels_[level] = block;
    ++blocks_;
  }

  /// The sum of everything added so far; 0 if nothing was.
  double sum() const {
    double sum = 0;
    bool first = true;
    for (uint64_t count = blocks_; count != 0; count &= count - 1) {  // the smallest subtree is the rightmost
      const double subtree = levels_[static_cast<size_t>(std::countr_zero(count))];
      sum = first ? subtree : subtree + sum;
      first = false;
    }
    return sum;
  }

 private:
  std::array<double, 64> levels_{};  // levels_[k]: sum of 2^k blocks, when bit k of blocks_ is set
  uint64_t blocks_ = 0;
};

/// The tensor's sum from the sums of its blocks.
inline double sum_of_tensor(std::span<const double> blocks) {
  BlockTree tree;
  for (const double block : blocks) tree.add(block);
  return tree.sum();
}

/// The sums of tensors, given like those of norm_of_squares(); 0 for one without blocks.
inline void tensor_squares(const double* blocks, std::span<const int64_t> tensors, double* sums) {
  for (size_t t = 0; t < tensors.size(); t += 2)
    sums[t / 2] = sum_of_tensor(std::span(blocks + tensors[t], static_cast<size_t>(tensors[t + 1])));
}

struct Norm {
  double value = 0;
  bool finite = true;
};

/// The norm from the blocks' sums; `tensors`: first block and number of blocks of each tensor. A block of f32 squares cannot overflow in
/// fp64, so its sum is finite if all its elements are; an overflowing block of f64 counts as infinite.
inline Norm norm_of_squares(const double* blocks, std::span<const int64_t> tensors) {
  double squares = 0;
  bool finite = true;
  for (size_t t = 0; t < tensors.size(); t += 2) {
    const std::span of_tensor(blocks + tensors[t], static_cast<size_t>(tensors[t + 1]));
    for (const double block : of_tensor) finite = finite && std::isfinite(block);
    squares += sum_of_tensor(of_tensor);
  }
  return {std::sqrt(squares), finite};
}

}  // namespace st::gradient_norm_order

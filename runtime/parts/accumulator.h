// Gradient accumulation over the micro-batches of a step, in the host's own arrays, for a host with its own forward and backward.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory_source.h"
#include "base/workers.h"
#include "parts/gradient_array.h"

namespace st {

/// The canonical sum of traps.md, order of sums 1 and 5: gradients of the *sum* of each micro-batch's losses, in micro-batch order; the
/// first one writes. At the end of a step one factor, 1 / total weight, turns the sum into the mean over all tokens. One call at a time.
class Accumulator {
 public:
  static constexpr int64_t kMaxSteps = 1 << 20;
  static constexpr double kMaxWeight = 0x1p53, kMinWeight = 0x1p-53;  // 1 / (kMaxSteps * weight) is a normal fp32 number

  /// Bytes of the sums. Throws invalid_argument for steps outside [1, kMaxSteps], no arrays, and arrays that are not floating.
  static int64_t bytes(int64_t steps, std::span<const GradientArray> gradients);

  /// Borrows the arrays for its life; they must not share memory and must be aligned to their elements. Throws like bytes().
  Accumulator(int64_t steps, std::span<const GradientArray> gradients, std::unique_ptr<Workers> workers,
              const std::shared_ptr<MemorySource>& memory);

  /// Adds the gradients in the arrays, of `weight` tokens; weight 0 adds nothing and ignores the arrays. The last call of a step writes the
  /// mean into them. Throws invalid_argument for an invalid weight and for a step without tokens, wrong_state if the step is complete and
  /// should_step() has not returned true yet; nothing has changed then.
  void add(double weight);
  /// Whether the step has all its micro-batches. After it has returned true, add() begins the next step.
  bool should_step();
  /// Total weight of this step's micro-batches so far.
  double weight() const { return weight_; }
  /// Discards the micro-batches of this step.
  void reset();
  /// Throws wrong_state within a step.
  void set_steps(int64_t steps);

  /// The state of a step: three numbers and the sums. The caller may write it between two calls to restore a step.
  struct StateArray {
    std::string name;  // added, weight, reported, then sum.0, sum.1, ... in the order of the gradients
    DType dtype = DType::f32;
    Shape shape;  // of a sum: its number of elements, in an order private to the gradient
    void* data = nullptr;
  };
  std::vector<StateArray> state();

 private:
  bool is_full() const { return added_ == steps_; }
  void check_state() const;

  int64_t steps_;
  std::vector<GradientArray> gradients_;
  std::unique_ptr<Workers> workers_;
  Memory memory_;  // all sums
  int64_t added_ = 0;
  double weight_ = 0;
  int64_t reported_ = 0;  // 1: should_step() has returned true
};

}  // namespace st

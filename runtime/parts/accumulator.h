// Gradient accumulation for a host with its own forward and backward, over its own arrays: the gradient of a step's several micro-batches.
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

/// The canonical sum of traps.md, order of sums 1 and 5: pieces in the order of their micro-batches, the first writes, each the gradient
/// of the *sum* of its losses; at the boundary one factor, 1 / all weights together, makes the mean over all tokens of it. One call at a
/// time.
class Accumulator {
 public:
  static constexpr int64_t kMaxSteps = 1 << 20;
  static constexpr double kMaxWeight = 0x1p53, kMinWeight = 0x1p-53;  // 1 / (kMaxSteps of them) is a normal fp32 number

  /// What the sums will take. Throws invalid_argument for steps beyond 1 to kMaxSteps, no arrays, and arrays that are not floating.
  static int64_t bytes(int64_t steps, std::span<const GradientArray> gradients);

  /// The arrays are borrowed as long as this lives, apart from each other and aligned to their elements. Throws as bytes().
  Accumulator(int64_t steps, std::span<const GradientArray> gradients, std::unique_ptr<Workers> workers,
              const std::shared_ptr<MemorySource>& memory);

  /// Adds what is in the arrays, of `weight` tokens; 0: nothing, whatever is in them. The last of a step writes the mean into them.
  /// Throws invalid_argument for another weight and a step of no tokens, wrong_state beyond the boundary before should_step() told of it;
  /// then nothing has changed.
  void add(double weight);
  /// Whether all of a step's micro-batches are in. Once told, add() begins the next step.
  bool should_step();
  /// Of the micro-batches of this step so far, all together.
  double weight() const { return weight_; }
  /// Forgets the micro-batches of this step.
  void reset();
  /// Throws wrong_state between two boundaries.
  void set_steps(int64_t steps);

  /// A step under way is these three numbers and the sums. Written to between two calls, it goes on from there.
  struct StateArray {
    std::string name;  // added, weight, told, then sum.0 and so on, by the gradients' places
    DType dtype = DType::f32;
    Shape shape;  // of a sum: its elements, in an order of the gradient's own
    void* data = nullptr;
  };
  std::vector<StateArray> state();

 private:
  bool is_full() const { return added_ == steps_; }
  void check_state() const;

  int64_t steps_;
  std::vector<GradientArray> gradients_;
  std::unique_ptr<Workers> workers_;
  Memory memory_;  // of all sums
  int64_t added_ = 0;
  double weight_ = 0;
  int64_t told_ = 0;  // 1: that it is full
};

}  // namespace st

// A step in the host's hands: forward, the host's loss, backward, as often as it likes, then one update by the sum.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "train/batch_binding.h"
#include "train/model.h"
#include "train/recipe.h"
#include "train/step_slots.h"

namespace st {

class HostLoss {
 public:
  /// What the plan is made from and runs on. All borrowed.
  struct Parts {
    Model& model;
    const Recipe& recipe;
    Storage& storage;  // of the trainer: parameters, gradients and moments
    Workers& workers;
    CancelToken& cancelled;
    const Plan* beside;  // the trainer's own step, whose moments are shared; null: none
  };
  /// own_loss: the graph's loss is computed too, so that backward may begin from it. Throws unsupported when an output depends on a
  /// parameter that `beside` does not train, out_of_memory before anything is allocated.
  HostLoss(const Parts& parts, bool own_loss, const PlanOptions& options);

  /// The inputs that a batch must have, by slot of the model.
  const std::vector<bool>& inputs() const { return inputs_->wanted(); }
  bool own_loss() const { return own_seed_ != nullptr; }

  /// Forgets the pairs so far. What backwards take, the host's gradients too, is multiplied with `loss_scale` (1 where the recipe scales no
  /// loss), and the update takes it out: the host knows nothing of it.
  void begin(double loss_scale);
  /// Runs one micro-batch of recipe.batch rows, the next of the step that is attempt `attempts`. A forward that no backward followed is
  /// replaced.
  void forward(std::span<const HostView> batch, int64_t attempts);
  /// All of the graph, in its order. The memory is this object's, until the next forward.
  std::span<const HostView> outputs() const { return outputs_; }
  /// Adds the gradients of the micro-batch last run forward; outputs that are not named count as 0. Throws invalid_argument for a gradient
  /// that is no output's, wrong_state out of turn.
  void backward(std::span<const HostView> gradients);
  void backward_own_loss();
  /// Pairs of forward and backward so far.
  int64_t pairs() const { return pairs_; }
  bool used_own_loss() const { return pairs_ > 0 && kind_ == Kind::own; }
  /// The one update; the caller has readied the weights.
  void update(double lr, int64_t number);

  const StepSlots& slots() const { return slots_; }
  const Executor& executor() const { return *executor_; }
  /// One unit of the true gradient in the gradient slots; known once update() was called.
  double unit() const { return slots_.loss_scale == nullptr ? *unit_ : *unit_ * *slots_.loss_scale; }
  int64_t own_bytes() const;

 private:
  struct OutputGradient {
    std::string name;  // of the output
    SlotId slot;
    Memory compact;  // what a host gives with gaps, without
  };
  enum class Kind { host, own };

  void find_slots();
  void run_backward(Kind kind);
  const void* zeros(int64_t bytes);
  void restore_loss();

  Parts parts_;
  std::optional<Storage> apart_;  // when this plan's gradients do not fit the trainer's
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Buffer> zeros_;
  std::optional<BatchBinding> inputs_;  // the model's own; output gradients are bound by backward
  std::vector<OutputGradient> gradients_;
  std::vector<std::string> names_;  // of outputs
  std::vector<HostView> outputs_;
  StepSlots slots_;
  double* own_seed_ = nullptr;
  double* unit_ = nullptr;
  size_t begins_[2][2]{}, ends_[2][2]{};  // instructions of forward and backward in the first and in later micro-batches
  int64_t pairs_ = 0;
  bool is_forward_done_ = false;
  Kind kind_ = Kind::host;
  double loss_sum_ = 0, loss_count_ = 0;  // of the pairs so far
};

}  // namespace st

// A step in the host's hands: forward, the host's loss, backward, as often as it likes, then one update by the sum.
//
// In a group each rank makes pairs of its own. With reduce micro the ranks' pairs g are micro-batches g * size + rank, whose gradients are
// added in their order as each backward goes: the bits are those of one rank that makes all of them in turn, and all ranks make the same
// number. With reduce step each adds up its own, as many as it likes, and the update adds the sums in the order of the ranks; but with zero
// 3 they make the same number, since forward and backward gather what others have.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/exchange_queue.h"
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
    const Plan* beside;   // the trainer's own step, whose moments are shared; null: none
    Communicator* ranks;  // whose rank options.rank is; null: there is one
  };
  /// own_loss: the graph's loss is computed too, so that backward may begin from it. Throws unsupported when an output depends on a
  /// parameter that `beside` does not train, out_of_memory before anything is allocated.
  HostLoss(const Parts& parts, bool own_loss, const PlanOptions& options);

  /// The inputs that a batch must have, by slot of the model.
  const std::vector<bool>& inputs() const { return inputs_->wanted(); }
  bool own_loss() const { return slots_.own_loss_seed != nullptr; }

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
  /// What ranks do together before the update, of which this is number `number`. Throws rank_mismatch, on all of them the same, where they
  /// have not made the same of the step, are at other attempts, or are to update by other learning rates or loss scales.
  void meet(double lr, int64_t number);
  /// The one update; the caller has readied the weights.
  void update(double lr, int64_t number);
  /// Of all ranks; known once meet() was called.
  int64_t pairs_of_all() const { return pairs_of_all_; }

  const StepSlots& slots() const { return slots_; }
  const Executor& executor() const { return *executor_; }
  /// One unit of the true gradient in the gradient slots; known once update() was called.
  double unit() const { return *slots_.gradient_unit * (slots_.loss_scale == nullptr ? 1 : *slots_.loss_scale); }
  int64_t own_bytes() const;
  double exposed_seconds() const { return queue_ ? queue_->exposed_seconds() - exposed_before_ : 0; }  // since begin()
  const ExchangeQueue* exchanges() const { return queue_.get(); }                                      // null: there is one rank

 private:
  struct OutputGradient {
    std::string name;  // of the output
    SlotId slot;
    Memory compact;  // what a host gives with gaps, without
  };
  enum class Kind { host, own };
  enum class Met { at_forward, at_backward, at_apply };

  /// What a rank tells the others of a pair, or of a step.
  struct Told {
    double loss_sum, loss_count, lr, loss_scale;
    int64_t call, kind, pairs, number, attempts;
  };

  void find_slots();
  bool gathers() const { return parts_.ranks != nullptr && parts_.recipe.zero == 3; }
  Told told() const;
  void run_backward(Kind kind);
  void run(size_t begin, size_t end);
  const void* zeros(int64_t bytes);
  void gather(const Told& own);
  void add_loss(double sum, double count, bool is_first);

  Parts parts_;
  std::optional<Storage> apart_;          // when this plan's gradients do not fit the trainer's
  std::unique_ptr<ExchangeQueue> queue_;  // none: there is one rank
  double exposed_before_ = 0;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Buffer> zeros_;
  std::optional<BatchBinding> inputs_;  // the model's own; output gradients are bound by backward
  std::vector<OutputGradient> gradients_;
  std::vector<std::string> names_;  // of outputs
  std::vector<HostView> outputs_;
  StepSlots slots_;
  size_t begins_[2][2]{}, ends_[2][2]{};  // instructions of forward and backward in the first and in later micro-batches
  int64_t pairs_ = 0, pairs_of_all_ = 0;
  int64_t attempts_ = 0;  // of the step that the pairs are of
  bool is_forward_done_ = false;
  Kind kind_ = Kind::host;
  double loss_sum_ = 0, loss_count_ = 0;  // of the pairs so far
  std::vector<Told> told_;                // by rank
};

}  // namespace st

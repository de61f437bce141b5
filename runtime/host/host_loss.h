// A step whose loss the host computes: any number of micro-batches (forward, the host's loss, backward), then one update by the sum of
// their gradients. In a group each rank runs its own micro-batches:
//   reduce micro   the g-th micro-batch of a rank is micro-batch g * size + rank of the step. Each backward adds gradients in that
//                  order, so results are bitwise equal to one rank that runs all of them in turn. All ranks run the same number
//   reduce step    each rank sums its own micro-batches, any number, and the update adds these sums in rank order. With zero 3 all
//                  ranks run the same number, because forward and backward gather the other ranks' shards
// With stages or tensor ranks, rank and size are those along the data axis, and all ranks make the same calls on the rows of their data
// rank. The outputs are on the stage of the last part alone, whole on each of its tensor ranks, which all give the same gradients. One
// micro-batch is under way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/exchange_queue.h"
#include "exec/executor.h"
#include "exec/stage_links.h"
#include "exec/step_slots.h"
#include "model/model.h"
#include "parts/rank_report.h"
#include "recipe/recipe.h"
#include "team/batch_binding.h"

namespace st {

class HostLoss {
 public:
  /// Connections of a rank of a group to those with other positions along the stage and the tensor axis; communicators are borrowed.
  struct OtherAxes {
    Communicator& all;
    Communicator* stages;                                                  // null: one stage
    Communicator* tensor;                                                  // null: one rank along the tensor axis
    std::function<void(StageLinks&, std::span<const StageLink>)> connect;  // collective call of all ranks
  };
  /// Everything that the plan is made from and runs on; all borrowed.
  struct Parts {
    Model& model;
    const Recipe& recipe;
    Storage& storage;  // of the rank: parameters, gradients and moments
    Workers& workers;
    CancelToken& cancelled;
    const Plan* beside;               // the plan of the trainer's own step, whose moments are shared; null: none
    Communicator* ranks;              // the data ranks, in which this is options.rank; null: one rank
    std::optional<OtherAxes> others;  // empty: data ranks alone
  };
  /// own_loss: also computes the graph's loss, so that backward may start from it. Throws unsupported if an output depends on a parameter
  /// that `beside` does not train, out_of_memory before anything is allocated.
  HostLoss(const Parts& parts, bool own_loss, const PlanOptions& options);

  /// By slot of the model: whether a batch must have this input.
  const std::vector<bool>& inputs() const { return inputs_->wanted(); }
  bool own_loss() const { return slots_.own_loss_seed.exists(); }

  /// Starts a step and discards micro-batches of the previous one. Every backward multiplies its seeds, including the host's gradients, by
  /// `loss_scale` (1 without loss scaling); the update divides by it, so the host need not know it.
  void begin(double loss_scale);
  /// Runs the forward pass of the next micro-batch, recipe.batch rows, of step attempt `attempts`. Replaces a forward without a backward.
  /// Returns all outputs of the graph, in its order; none on other stages than the last part's. Owned by this object, valid until the next
  /// forward.
  std::span<const HostView> forward(std::span<const HostView> batch, int64_t attempts);
  /// The same into arrays of the host's, for any of the outputs, none on other stages. Throws not_found for a name that is no output,
  /// invalid_argument for a dtype or shape that does not match, and for memory that two of them or the batch have in common.
  void forward_into(std::span<const HostView> batch, int64_t attempts, std::span<const HostView> outputs);
  /// Runs the backward pass of the last forward from gradients of the outputs, by name; outputs that are not named count as 0. Throws
  /// invalid_argument for a name that is not an output, wrong_state without a forward. On other stages than the last part's both calls are
  /// the same, and take no gradients.
  void backward(std::span<const HostView> gradients);
  void backward_own_loss();
  /// Micro-batches (forward and backward) so far.
  int64_t pairs() const { return pairs_; }
  bool used_own_loss() const { return pairs_ > 0 && from_ == From::own_loss; }
  /// Collective call of all ranks before update number `number`. Throws the same rank_mismatch on all ranks if they ran different calls in
  /// this step, are at different attempts, or have different learning rates or loss scales.
  void meet(double lr, int64_t number);
  /// Runs the update; the caller holds the weights gate.
  void update(double lr, int64_t number);
  /// Micro-batches of all ranks; valid after meet().
  int64_t pairs_of_all() const { return pairs_of_all_; }

  const StepSlots& slots() const { return slots_; }
  const Executor& executor() const { return *executor_; }
  /// The gradient slots divided by this are the true gradient; valid after update().
  double unit() const { return slots_.gradient_unit.get() * (slots_.loss_scale.get_or(1)); }
  int64_t own_bytes() const;
  double exposed_seconds() const { return queue_ ? queue_->exposed_seconds() - exposed_before_ : 0; }  // since begin()
  const ExchangeQueue* exchanges() const { return queue_.get(); }                                      // null: one rank

 private:
  struct OutputGradient {
    std::string name;  // of the output
    SlotId slot;
    Memory compact;  // contiguous copy of a gradient that the host gives with gaps
  };
  using From = RankReport::From;

  void find_slots();
  void check_into(std::span<const HostView> outputs) const;
  void compute_outputs(std::span<const HostView> batch, int64_t attempts);
  void copy_output(const HostView& to);
  bool gathers() const { return parts_.ranks != nullptr && (parts_.recipe.zero == 3 || parts_.others); }
  Communicator& all() const { return parts_.others ? parts_.others->all : *parts_.ranks; }
  void keep_hash_of(std::span<const HostView> gradients);
  RankReport report(RankReport::Call call) const;
  void run_backward(From from);
  void run(size_t begin, size_t end);
  Address zeros(int64_t bytes);
  void meet(const RankReport& own);
  void add_loss(double sum, double count, bool is_first);
  void add_losses(bool is_first);

  Parts parts_;
  std::optional<Storage> apart_;          // own gradients, if they do not fit in the trainer's arena
  std::unique_ptr<ExchangeQueue> queue_;  // null: one rank
  bool has_outputs_ = true;               // its stage has the last part
  bool is_counted_ = true;                // and it is the first of its tensor ranks
  uint64_t hash_ = 0;                     // of the gradients of this backward
  double exposed_before_ = 0;
  std::unique_ptr<Executor> executor_;
  std::optional<StageLinks> links_;  // empty: one stage. Ends before the executor, from whose memory it sends
  std::unique_ptr<Buffer> zeros_;
  std::optional<BatchBinding> inputs_;  // the model's inputs; backward binds output gradients
  std::vector<OutputGradient> gradients_;
  std::vector<std::string> names_;  // of outputs
  std::vector<Address> computed_;   // where the forward computes them, in the same order
  std::vector<HostView> outputs_;   // there, or in downloads_
  std::vector<Memory> downloads_;   // of the outputs, where the host cannot read the device's memory
  StepSlots slots_;
  size_t begins_[2][2]{}, ends_[2][2]{};  // instruction ranges of forward and backward in the first and in later micro-batches
  int64_t pairs_ = 0, pairs_of_all_ = 0;
  int64_t attempts_ = 0;  // of the current step
  bool is_forward_done_ = false;
  From from_ = From::gradients;
  double loss_sum_ = 0, loss_count_ = 0;  // of the micro-batches so far
  std::vector<RankReport> reports_;       // by rank
};

}  // namespace st

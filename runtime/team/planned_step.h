// A step on the graph's own loss, run in slices: the plan's micro-batches in order, the last of which may be short, then the update.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "exec/executor.h"
#include "exec/step_slots.h"
#include "model/model.h"
#include "recipe/recipe.h"

namespace st {

/// How a step begins, alike on all ranks.
struct StepStart {
  double lr = 0;
  int64_t number = 0;    // of the update, from 1
  int64_t attempts = 0;  // steps before it, skipped ones too
  int64_t rows = 0;      // of all ranks, from 1 to the recipe's
  double loss_scale = 1;
};

class PlannedStep {
 public:
  /// Plans and allocates the whole step. Borrows all arguments; `storage` is the rank's. `ranks`: the group that shares the step's
  /// micro-batches, in which this is options.rank; null: one rank. `stages`: of a pipeline; null: one stage. `tensor`: the ranks along the
  /// tensor axis; null: one. Throws out_of_memory before anything is allocated.
  PlannedStep(Model& model, const Recipe& recipe, Storage& storage, Workers& workers, CancelToken& cancelled, const PlanOptions& options,
              Communicator* ranks = nullptr, StageLinks* stages = nullptr, Communicator* tensor = nullptr);

  /// Binds the parameters that the plan borrows (PlanOptions::shares_masters) to those of rank 0's model, which must outlive this.
  void share_masters(const Model& of);
  /// For a thread with copies (threads_have_copies): each update leaves the whole parameters in this model, rank 0's, which must outlive
  /// this.
  void leave_parameters_in(const Model& whole) { whole_ = &whole; }

  /// Begins a step. With fewer rows than the recipe's, the last micro-batch that has any is short, and those without rows add nothing. The
  /// plan of a short micro-batch is made when its number of rows first occurs.
  void begin(const StepStart& start);

  /// Whether this rank's working copies, of which each rank makes its shard (PlanOptions::shards_masters), are out of date.
  bool lacks_copies() const { return makes_gathered_copies_ && gathered_at_ != model_.gate().changes(); }
  /// Makes the step rebuild the copies first. Call it after begin(), on all ranks if any rank lacks copies.
  void gather_copies_first() { gathers_copies_ = true; }

  /// Binds `rows` rows from `first_row` to an executor's inputs. Returns false if they are not ready yet.
  using Bind = std::function<bool(int64_t first_row, int64_t rows, Executor& executor)>;
  /// Runs until `deadline` (os::seconds()), at least one instruction if its rows are ready; returns whether the step is done. Holds the
  /// model's gate. After an error the step cannot continue. With the recipe's find_nan, a step whose loss or gradients are not finite
  /// throws not_finite, and no weight has changed.
  bool run_until(double deadline, const Bind& bind);
  /// After a run that stopped because a group has ended: throws why, with the rank that ended it.
  [[noreturn]] void throw_end_of_group();
  /// Whether the update has begun; before that the step may be abandoned.
  bool is_updating() const { return cursor_.at > executor_.begin_of_update(); }
  /// Whether a parameter has been updated since the step began.
  bool has_updated() const { return cursor_.at > executor_.plan().first_optimizer && !slots_.skipped.get(); }
  /// Whether run_until() is rerunning the step from its first row to find the first value that is not finite (recipe find_nan). It asks
  /// `Bind` for the same rows again.
  bool is_finding_nan() const { return finding_nan_; }
  /// Whether the step is being rerun and these are this rank's first rows.
  bool begins_again(int64_t first_row) const { return finding_nan_ && first_row == rank_ * recipe_.batch; }
  /// Whether the step may still need rows.
  bool is_computing() const { return segment_ != Segment::update; }

  /// Values of the finished step.
  const StepSlots& slots() const { return slots_; }
  double unit() const {
    const double seed = executor_.plan().program.loss_seed * slots_.loss_count.get();
    return seed * slots_.loss_scale.get_or(1);
  }
  int64_t tokens() const { return tokens_; }

  /// With recompute auto and zero 3, or stages, what ranks send each other depends on the recomputed scopes, and these on the free memory:
  /// the scopes that this rank recomputes, which other ranks and short micro-batches must use too. Empty: each decides for itself.
  std::optional<std::vector<RegionId>> scopes_for_all() const;

  /// Tokens of one full micro-batch.
  int64_t micro_batch_tokens() const { return tokens_of_micro_batch_; }
  /// The executor of a full step.
  const Executor& executor() const { return executor_; }
  /// Executor::watch of full micro-batches and the update.
  void watch(Executor::Watch watch) { executor_.watch(std::move(watch)); }
  int64_t own_bytes() const;
  /// Time since begin() that this rank spent in collectives without overlapping its computing.
  double exposed_seconds() const { return ranks_ ? ranks_->exposed_seconds() - exposed_before_ : 0; }
  const ExchangeQueue* exchanges() const { return ranks_.get(); }  // null: one rank
  /// Frees the plans of short micro-batches, which a later step makes again. Not during a step.
  void trim() { short_.clear(); }

 private:
  /// full: the rounds in which all data ranks have full micro-batches; last: a full one in the round after them; rest: a short one.
  enum class Segment { full, last, rest, update };

  /// A micro-batch with fewer rows than the recipe's.
  struct Short {
    explicit Short(Plan plan, Storage& storage, Workers& workers, CancelToken& cancelled, ExchangeQueue* ranks, StageLinks* stages,
                   Communicator* tensor)
        : executor(std::move(plan), storage, workers, &cancelled, ranks, stages, tensor), slots(executor) {}
    Executor executor;
    StepSlots slots;
  };
  Short& short_plan(int64_t rows);

  /// Micro-batches that one executor runs.
  struct Rounds {
    Executor* executor = nullptr;
    const StepSlots* slots = nullptr;
    Executor::Cursor* cursor = nullptr;
    int64_t rows = 0;  // of each
  };
  int64_t own_of(int64_t micro_batches) const;
  int64_t filled() const { return full_ + (short_rows_ > 0 ? 1 : 0); }
  Contributors contributors_in(int64_t round) const;
  void run_without_rows();
  void meet();
  void meet_stages();
  void leave_parameters();
  void take_weights();
  bool compute(double deadline, const Bind& bind);
  Rounds rounds();
  bool prepare(const Rounds& rounds, int64_t round, const Bind& bind);
  void end_segment();
  bool update(double deadline);
  void restart();
  bool is_loss_finite();
  bool can_scale_less() const;
  [[noreturn]] void find_nan(const Bind& bind);

  Model& model_;
  const Recipe& recipe_;
  Storage& storage_;
  Workers& workers_;
  CancelToken& cancelled_;
  const std::unique_ptr<ExchangeQueue> ranks_;  // null: one rank
  StageLinks* const stages_;                    // null: one stage
  Communicator* const tensor_;                  // null: one rank along the tensor axis
  const Model* whole_ = nullptr;                // the model that gets the whole parameters; null: they are the model's
  const Model* masters_ = nullptr;              // the model whose parameters are borrowed; null: the step has its own
  const int64_t data_ranks_;
  const int32_t rank_;         // of them
  const PlanOptions of_rank_;  // what plans of this rank have in common
  Executor executor_;
  StepSlots slots_;
  const int64_t tokens_of_micro_batch_;
  const bool makes_gathered_copies_;
  std::map<int64_t, std::unique_ptr<Short>> short_;  // by rows

  // The current step.
  Segment segment_ = Segment::full;
  int64_t full_ = 0;        // full micro-batches of all ranks
  int64_t short_rows_ = 0;  // rows of the short micro-batch after them; 0: none
  int64_t own_full_ = 0;    // full micro-batches of this rank
  int64_t prepared_ = 0;    // its micro-batches whose rows were bound
  Short* rest_ = nullptr;   // this rank's short micro-batch; null: none
  Executor::Cursor cursor_, last_cursor_, rest_cursor_;
  int64_t attempts_ = 0, tokens_ = 0;
  double exposed_before_ = 0;
  bool finding_nan_ = false;
  int64_t copies_at_ = -1;  // the gate's changes() after the update that wrote the working copies; -1: none has
  bool gathers_copies_ = false;
  int64_t gathered_at_ = -1;  // like copies_at_, for the copies that all ranks make together
  int64_t packed_at_ = -1;    // the gate's changes() when this step last read the weights; -1: not yet
};

}  // namespace st

// A step on the graph's own loss, in slices: the plan's micro-batches in order, of which the last may be short, then the update.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "exec/executor.h"
#include "train/model.h"
#include "train/recipe.h"
#include "train/step_slots.h"

namespace st {

class PlannedStep {
 public:
  /// Plans and allocates the whole step. Borrows all of them; `storage` is the trainer's. Throws out_of_memory before anything is
  /// allocated. `ranks`: whom it shares the step's micro-batches with, this being options.rank; null: with nobody.
  PlannedStep(Model& model, const Recipe& recipe, Storage& storage, Workers& workers, CancelToken& cancelled, const PlanOptions& options,
              Communicator* ranks = nullptr);

  /// Binds the parameters that the plan is lent (PlanOptions::shares_masters) to those of rank 0's model, which outlives this.
  void share_masters(const Model& of);

  /// Begins a step on `rows` rows, 1 to those of the recipe: when fewer, only the last micro-batch that has any is short, and those
  /// without add nothing. The plan of a short one is made when its number of rows is first met.
  /// `loss_scale` is 1 where the recipe scales no loss.
  void begin(double lr, int64_t number, int64_t attempts, int64_t rows, double loss_scale);

  /// Of working copies that ranks make their pieces of (PlanOptions::keeps_master_pieces): whether those here are no more of the weights.
  bool lacks_copies() const { return executor_.has_gathered_copies() && gathered_at_ != model_.gate().changes(); }
  /// After begin(), on all ranks where one lacks them: the step begins by making them.
  void gather_copies_first() { gathers_copies_ = true; }

  /// Makes `rows` rows from `first_row` on the inputs of an executor. False: they are not there yet.
  using Bind = std::function<bool(int64_t first_row, int64_t rows, Executor& executor)>;
  /// Goes on until `deadline` (os::seconds()), with at least one instruction if it has the rows; whether the step is done. Holds the
  /// model's gate. After an error the step cannot go on. With the recipe's find_nan a step whose loss or gradients are not finite ends with
  /// not_finite, and no weight has changed.
  bool go_on(double deadline, const Bind& bind);
  /// False: nothing has been updated yet, and the step may still be forgotten.
  bool is_updating() const { return cursor_.at > executor_.begin_of_update(); }
  /// Whether a parameter has been updated since the step began.
  bool has_updated() const { return cursor_.at > first_update_ && !*slots_.skipped; }
  /// Whether go_on() runs the step again from its first row, to find where a value stopped being finite (recipe find_nan). `Bind` is then
  /// asked for the same rows once more.
  bool is_finding_nan() const { return finding_nan_; }
  /// Whether these are then its first rows, of this rank.
  bool begins_again(int64_t first_row) const { return finding_nan_ && first_row == rank_ * recipe_.batch; }
  /// False: no more rows are needed.
  bool is_computing() const { return part_ != Part::update; }

  /// Of the step that is done.
  const StepSlots& slots() const { return slots_; }
  double unit() const {
    const double seed = executor_.plan().program.loss_seed * *slots_.loss_count;
    return slots_.loss_scale == nullptr ? seed : seed * *slots_.loss_scale;
  }
  int64_t tokens() const { return tokens_; }

  /// Where the order of what ranks exchange depends on what they recompute, and that on the memory they find (zero 3, recompute auto): the
  /// scopes that this rank does, for the others and for short micro-batches. Empty: each sees for itself.
  std::optional<std::vector<RegionId>> scopes_for_all() const;

  /// Of one micro-batch with all its rows.
  int64_t micro_batch_tokens() const;
  /// Of a step of all rows.
  const Executor& executor() const { return executor_; }
  int64_t own_bytes() const;
  /// Since begin(): of this rank's time in exchange what its computing did not hide.
  double exposed_seconds() const { return ranks_ ? ranks_->exposed_seconds() - exposed_before_ : 0; }
  const ExchangeQueue* exchanges() const { return ranks_.get(); }  // null: there is one rank
  /// Gives back the plans of short micro-batches, which a later step makes anew. Not while a step is under way.
  void trim() { short_.clear(); }

 private:
  enum class Part { full, rest, update };

  /// Of a micro-batch with fewer rows than the recipe's.
  struct Short {
    explicit Short(Plan plan, Storage& storage, Workers& workers, CancelToken& cancelled, ExchangeQueue* ranks)
        : executor(std::move(plan), storage, workers, &cancelled, ranks), slots(executor) {}
    Executor executor;
    StepSlots slots;
  };
  Short& short_plan(int64_t rows);
  int64_t own_of(int64_t micro_batches) const;
  int64_t filled() const { return full_ + (short_rows_ > 0 ? 1 : 0); }
  Contributors contributors_in(int64_t round) const;
  void exchange_without_rows();
  void meet();
  bool go_on_to(double deadline, const Bind& bind);
  bool compute(double deadline, const Bind& bind);
  void keep_packed();
  void restart();
  bool can_scale_less() const;
  [[noreturn]] void find_nan(const Bind& bind);

  Model& model_;
  const Recipe& recipe_;
  Storage& storage_;
  Workers& workers_;
  CancelToken& cancelled_;
  const std::unique_ptr<ExchangeQueue> ranks_;  // none: it shares the step with nobody
  const Model* masters_ = nullptr;              // whose parameters are lent; none: it has all of its own
  const int32_t rank_;
  const bool shares_masters_, keeps_master_pieces_;
  Executor executor_;
  StepSlots slots_;
  size_t first_update_ = 0;                          // instruction
  std::map<int64_t, std::unique_ptr<Short>> short_;  // by rows

  // The step under way.
  Part part_ = Part::full;
  int64_t full_ = 0;        // micro-batches with all their rows, of all ranks
  int64_t short_rows_ = 0;  // of the one after them
  int64_t own_full_ = 0;    // micro-batches with all their rows, of this rank
  Short* rest_ = nullptr;   // its plan; null: there is none
  Executor::Cursor cursor_, rest_cursor_;
  size_t full_end_ = 0, rest_end_ = 0;
  int64_t attempts_ = 0, tokens_ = 0;
  double exposed_before_ = 0;
  bool finding_nan_ = false;
  int64_t copies_at_ = -1;  // the gate's changes() behind the update that left working copies of the weights; -1: none has
  bool gathers_copies_ = false;
  int64_t gathered_at_ = -1;  // as copies_at_, of those that all ranks make together
  int64_t packed_at_ = -1;    // the gate's changes() when its calls so far saw the weights; -1: none has
};

}  // namespace st

// The executor: a flat loop over a plan. Everything is resolved at construction, so that a step allocates nothing.
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/workers.h"
#include "exec/cancel_token.h"
#include "exec/exchange_queue.h"
#include "exec/planned_exchange.h"
#include "exec/storage.h"
#include "plan/plan.h"

namespace st {

class Executor {
 public:
  /// Allocates the plan's arenas; those that outlive it come from `storage`. Borrows all arguments but the plan.
  ///   cancelled   may be null; checked before each instruction up to the update, and reset when seen
  ///   ranks       the group of a plan for several ranks; null: the plan has no collectives
  /// Throws unsupported with the op if the backend has no kernel for it.
  Executor(Plan plan, Storage& storage, Workers& workers, CancelToken* cancelled, ExchangeQueue* ranks = nullptr);

  /// Called before the first instruction of each micro-batch: binds inputs and writes counters.
  using BeforeMicroBatch = std::function<void(int64_t micro_batch)>;
  /// Runs the whole plan. Throws what a kernel throws, with op and scope in the message, or cancelled. Parameters and optimizer state are
  /// those of the last whole step then, because no instruction of the update has run.
  void run(const BeforeMicroBatch& before);

  /// Position in a run that is executed in slices. Discard it to abandon the run.
  struct Cursor {
    size_t at = 0;             // the next instruction
    int32_t micro_batch = -1;  // the last one prepared
  };
  static constexpr double kNoDeadline = std::numeric_limits<double>::infinity();
  /// Like BeforeMicroBatch. Returns false if the rows are not ready, or never will be because the run was cancelled; it is called again
  /// then.
  using PrepareMicroBatch = std::function<bool(int64_t micro_batch)>;
  /// Runs up to instruction `end`, like run(), or until `deadline` (os::seconds()), but at least one instruction unless its rows are not
  /// ready. Returns whether it reached `end`. After an error the run cannot continue, and the caller must abandon the queue's collectives
  /// (give_up).
  bool run_until(Cursor& cursor, size_t end, double deadline, const PrepareMicroBatch& prepare);
  /// Sets the contributors of the round that begins; call it in PrepareMicroBatch if the plan has collectives.
  void set_contributors(const Contributors& contributors) { contributors_ = contributors; }
  /// Runs only the collectives of a micro-batch for which this rank has no rows: those of each round, those of each step, or both. Makes
  /// the working copies of its shards if other ranks gather them.
  enum class Exchanged { by_round, once_a_step, all };
  void run_exchange(int64_t micro_batch, const Contributors& contributors, Exchanged which);
  /// Sets whether the lasting copies of weights are valid; then runs do not make them. Initially false.
  void keep_copies(bool are_valid) { is_valid_[static_cast<size_t>(Copy::lasting)] = are_valid; }
  /// Makes these copies of weights from the weights as they are now: those of the step and the lasting ones after a change of weights
  /// between two micro-batches of a run; gathered ones, which is a collective call, before the first run and before a run whose weights
  /// have changed since the last update.
  void make_copies(std::initializer_list<Copy> copies);
  /// Called after each instruction of run_until() with its operands and results; its exceptions end the run. Empty: no calls.
  using Watch = std::function<void(const Instruction& at, const Call& call)>;
  void watch(Watch watch) { watch_ = std::move(watch); }
  /// The first instruction of a phase in a micro-batch, or end(); the update belongs to the last micro-batch.
  size_t first_of(Phase phase, int64_t micro_batch) const;
  size_t begin_of_update() const { return update_; }
  size_t end() const { return steps_.size(); }

  /// Binds an input or a borrowed slot to memory, which is borrowed until the next bind().
  void bind(SlotId slot, const void* data);
  /// A slot's memory. The host writes control slots and reads report slots through it, between runs or in BeforeMicroBatch.
  const Operand& slot(SlotId slot) const { return slots_[static_cast<size_t>(slot)]; }
  const Plan& plan() const { return plan_; }
  /// Bytes allocated for an arena, exactly the plan's. Arenas of `storage` are shared by all its executors.
  int64_t allocated(Arena arena) const;

 private:
  /// How a collective runs: on this thread, on the second thread until its await, or as that await.
  enum class ExchangeMode { blocking, posted, await };

  struct Step {
    void (*run)(const Call& call);
    const Call* call;
    Instruction at;
    PlannedExchange* exchange;  // not null: runs instead of `run`
    ExchangeMode mode;
  };

  void allocate();
  void resolve();
  Operand operand(int32_t section, Value v) const;
  std::byte* address(const Place& place) const;
  void look_for_cancel(const Cursor& cursor);
  void execute(const Step& step);
  void exchange(const Step& step);
  bool is_valid(Copy copy) const { return is_valid_[static_cast<size_t>(copy)]; }

  Plan plan_;
  Storage& storage_;
  Workers& workers_;
  CancelToken* cancelled_;
  ExchangeQueue* ranks_;
  Contributors contributors_;
  std::vector<std::unique_ptr<PlannedExchange>> exchanges_;
  size_t update_ = 0;                                        // first instruction of the update
  std::array<bool, 4> is_valid_{false, false, false, true};  // by Copy: runs do not make it
  bool computes_ = true;                                     // false: has no rows and only runs collectives
  bool gathers_pieces_ = false;                              // gathers sharded parameters and their copies (Role::gathered)
  std::array<std::unique_ptr<Buffer>, kArenas> own_;
  std::vector<Operand> slots_;
  std::vector<Operand> operands_;  // of all calls, contiguous
  std::vector<Call> calls_;        // one per node, shared by all micro-batches
  std::vector<Step> steps_;
  Watch watch_;
  std::vector<std::vector<Operand*>> bound_;  // operands of each slot in the host's memory
};

}  // namespace st

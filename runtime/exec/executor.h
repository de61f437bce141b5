// The executor: a flat loop over a plan. Everything is resolved at construction, so that a step allocates nothing.
#pragma once

#include <functional>
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
  /// Packs the weights and makes their working copies again, after a change of weights between two micro-batches of a run.
  void pack_again();
  /// Sets whether all working copies are up to date: written by the last update, with no change of a weight since. While they are, runs do
  /// not make them. Initially false.
  void keep_copies(bool are_right) { keeps_copies_ = are_right; }
  /// Makes the working copies whose masters are sharded (keep_master_pieces), which no run makes. Collective call of all ranks, before the
  /// first run and before a run whose weights have changed since the last update.
  void gather_copies();
  bool has_gathered_copies() const { return has_gathered_copies_; }
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
  /// The copy of a weight that a step makes for all its micro-batches. `lasting` stays valid from an update to the next step; `gathered`
  /// too, and only gather_copies() makes it.
  enum class Copy { none, packed_or_working, lasting, gathered };

  /// How a collective runs: on this thread, on the second thread until its await, or as that await.
  enum class ExchangeMode { blocking, posted, await };

  struct Step {
    void (*run)(const Call& call);
    const Call* call;
    Instruction at;
    Copy makes;
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
  bool lasts(SlotId copy) const;
  bool has_lasted(const Step& step) const;
  std::map<std::pair<int32_t, int32_t>, Copy> makers_of_copies() const;

  Plan plan_;
  Storage& storage_;
  Workers& workers_;
  CancelToken* cancelled_;
  ExchangeQueue* ranks_;
  Contributors contributors_;
  std::vector<std::unique_ptr<PlannedExchange>> exchanges_;
  size_t update_ = 0;  // first instruction of the update
  bool keeps_copies_ = false;
  bool computes_ = true;  // false: has no rows and only runs collectives
  bool has_gathered_copies_ = false;
  bool gathers_pieces_ = false;  // gathers sharded parameters and their copies (Role::gathered)
  std::array<std::unique_ptr<Buffer>, kArenas> own_;
  std::vector<Operand> slots_;
  std::vector<Operand> operands_;  // of all calls, contiguous
  std::vector<Call> calls_;        // one per node, shared by all micro-batches
  std::vector<Step> steps_;
  Watch watch_;
  std::vector<std::vector<Operand*>> bound_;  // operands of each slot in the host's memory
};

}  // namespace st

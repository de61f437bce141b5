// The executor: a flat loop over a plan. Everything is resolved when it is made, so that a step allocates nothing.
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
  /// Allocates the plan's arenas; those that outlive it come from `storage`. Borrows storage and workers; `cancelled` (may be null) is
  /// looked at before each instruction up to the update, and taken back when seen. `ranks` (borrowed): whom a plan of several ranks is run
  /// with; null: it has no exchange. Throws unsupported for an op that the backend has no kernel for, naming it.
  Executor(Plan plan, Storage& storage, Workers& workers, CancelToken* cancelled, ExchangeQueue* ranks = nullptr);

  /// Called before the first instruction of each micro-batch: binds inputs and writes counters.
  using BeforeMicroBatch = std::function<void(int64_t micro_batch)>;
  /// Runs the whole plan. Throws what a kernel throws, with op and scope in the message; cancelled when the flag was seen. State of
  /// parameters and optimizer is that of the last whole step then, since no instruction of the update has run.
  void run(const BeforeMicroBatch& before);

  /// A run in pieces: where it stands. Given up by forgetting it.
  struct Cursor {
    size_t at = 0;             // the next instruction
    int32_t micro_batch = -1;  // the one that was prepared last
  };
  static constexpr double kNoDeadline = std::numeric_limits<double>::infinity();
  /// As BeforeMicroBatch. False: the rows are not there yet, or will not be since the run was cancelled; it is called again.
  using PrepareMicroBatch = std::function<bool(int64_t micro_batch)>;
  /// Goes on to instruction `end`, as run() does, or until `deadline` (os::seconds()) has passed, with at least one instruction unless
  /// there are no rows for it. Whether it got there. After an error the run cannot go on, and what the queue has is given up by the caller.
  bool go_on(Cursor& cursor, size_t end, double deadline, const PrepareMicroBatch& prepare);
  /// Of the round that begins: to be set in PrepareMicroBatch, where the plan has exchange.
  void set_contributors(const Contributors& contributors) { contributors_ = contributors; }
  /// Of a micro-batch that this rank has no rows for, the exchange alone: what each round does, what a step does once, or both. Where
  /// others gather working copies of its pieces, it makes them.
  enum class Exchanged { by_round, once_a_step, all };
  void run_exchange(int64_t micro_batch, const Contributors& contributors, Exchanged which);
  /// Packs the weights and makes their working copies anew: they were changed between two micro-batches of a run.
  void pack_again();
  /// Whether the working copies of the weights are right as they lie, all of them: left by the last update, and nobody has changed a weight
  /// since. Runs make none then, until told otherwise; at first they are not.
  void keep_copies(bool are_right) { keeps_copies_ = are_right; }
  /// Makes the working copies that ranks have masters of in pieces (keep_master_pieces): all of them call it, before a run whose weights
  /// are no more those of the last update, or with none before it. No run makes them.
  void gather_copies();
  bool has_gathered_copies() const { return has_gathered_copies_; }
  /// Called after each instruction of go_on() with what it read and wrote; what it throws ends the run. Empty: nothing is called.
  using Watch = std::function<void(const Instruction& at, const Call& call)>;
  void watch(Watch watch) { watch_ = std::move(watch); }
  /// The first instruction of a phase in a micro-batch, or the end of the plan; the update counts as the last micro-batch's.
  size_t first_of(Phase phase, int64_t micro_batch) const;
  size_t begin_of_update() const { return update_; }
  size_t end() const { return steps_.size(); }

  /// Where an input, or a slot that is lent, lies until bound anew. Borrowed.
  void bind(SlotId slot, const void* data);
  /// A slot's memory: control slots are written and report slots read through this, between runs or in BeforeMicroBatch.
  const Operand& slot(SlotId slot) const { return slots_[static_cast<size_t>(slot)]; }
  const Plan& plan() const { return plan_; }
  /// Bytes allocated for an arena: the plan's, exactly. Those of storage count once for all executors.
  int64_t allocated(Arena arena) const;

 private:
  /// Of a weight, for all micro-batches of a step; a lasting one is right from an update to the next step; a gathered
  /// one lasts, and is gather_copies()'s to make.
  enum class Copy { none, packed_or_working, lasting, gathered };

  /// Of an exchange: on this thread, or beside it up to its await.
  enum class Turn { here, beside, await };

  struct Step {
    void (*run)(const Call& call);
    const Call* call;
    Instruction at;
    Copy makes;
    PlannedExchange* exchange;  // in place of `run`
    Turn turn;
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
  size_t update_ = 0;  // its first instruction
  bool keeps_copies_ = false;
  bool computes_ = true;  // else it has no rows, and exchanges
  bool has_gathered_copies_ = false;
  bool gathers_pieces_ = false;  // of parameters and their copies, whole for a while (Role::gathered)
  std::array<std::unique_ptr<Buffer>, kArenas> own_;
  std::vector<Operand> slots_;
  std::vector<Operand> operands_;  // of all calls, one after the other
  std::vector<Call> calls_;        // one a node, however many micro-batches it runs in
  std::vector<Step> steps_;
  Watch watch_;
  std::vector<std::vector<Operand*>> bound_;  // by slot in the host's memory: its operands
};

}  // namespace st

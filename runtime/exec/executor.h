// The executor: a flat loop over a plan, which gives the instructions to a stream of the backend. Everything is resolved at construction,
// so that a step allocates nothing.
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>

#include "backend/host_order.h"
#include "base/error.h"
#include "base/workers.h"
#include "exec/cancel_token.h"
#include "exec/device_inputs.h"
#include "exec/planned_calls.h"
#include "exec/planned_instructions.h"
#include "exec/recorded_kernels.h"
#include "exec/state_copies.h"
#include "exec/storage.h"
#include "plan/plan.h"

namespace st {

/// Number of ranks with rows, which are the first ones: in the current round of micro-batches, and in any round of the step.
struct Contributors {
  int in_round = 1, in_step = 1;
};

class Executor {
 public:
  /// Allocates the plan's arenas; those that outlive it come from `storage`. Borrows all arguments but the plan.
  ///   cancelled   may be null; checked before each instruction up to the update, and reset when seen
  ///   ranks       the data ranks of a plan for several; null: the plan has no collectives among them
  ///   stages      of a plan for several stages; null: one stage. Connected before the first run
  ///   tensor      the ranks along the tensor axis; null: one rank
  /// Throws unsupported with the op if the backend has no kernel for it.
  Executor(Plan plan, Storage& storage, Workers& workers, CancelToken* cancelled, ExchangeQueue* ranks = nullptr,
           StageLinks* stages = nullptr, Communicator* tensor = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Called before each run of instructions of a micro-batch, so again when the plan returns to one in flight: binds its inputs and writes
  /// its counters.
  using BeforeMicroBatch = std::function<void(int64_t micro_batch)>;
  /// Runs the whole plan; what it has run is done when it returns. Throws what a kernel throws, with op and scope in the message, or
  /// cancelled. Parameters and optimizer state are those of the last whole step then, because no instruction of the update has run.
  void run(const BeforeMicroBatch& before);

  /// Position in a run that is executed in slices. Discard it to abandon the run.
  struct Cursor {
    size_t at = 0;                  // the next instruction
    int64_t begin = 0, end = kAll;  // the micro-batches that the run has; instructions of others are left out
    int32_t micro_batch = -1;       // the last one prepared
    static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  };
  static constexpr double kNoDeadline = std::numeric_limits<double>::infinity();
  /// Like BeforeMicroBatch. Returns false if the rows are not ready, or never will be because the run was cancelled; it is called again
  /// then.
  using PrepareMicroBatch = std::function<bool(int64_t micro_batch)>;
  /// Runs up to instruction `end`, like run(), or until `deadline` (os::seconds()), but at least one instruction unless its rows are not
  /// ready; on a device of its own memory at least one section, since it waits for the device before it looks at the clock. Returns whether
  /// it reached `end`. The update is run whatever micro-batches the run has. After an error the run cannot continue, and the caller must
  /// abandon the queue's collectives (give_up).
  bool run_until(Cursor& cursor, size_t end, double deadline, const PrepareMicroBatch& prepare);
  /// Sets the contributors of the round that begins; call it in PrepareMicroBatch if the plan has collectives.
  void set_contributors(const Contributors& contributors) { contributors_ = contributors; }
  /// Runs what all ranks run of a micro-batch for which this rank has no rows: in each round, once per step, or both.
  enum class RunByAll { in_round, in_step, both };
  void run_without_rows(int64_t micro_batch, const Contributors& contributors, RunByAll which);
  /// Sets whether the lasting copies of weights are valid; then runs do not make them. Initially false.
  void keep_copies(bool are_valid) { is_valid_[static_cast<size_t>(Copy::lasting)] = are_valid; }
  /// Makes these copies of weights from the weights as they are now: those of the step and the lasting ones after a change of weights
  /// between two micro-batches of a run; gathered ones, which is a collective call, before the first run and before a run whose weights
  /// have changed since the last update.
  void make_copies(std::initializer_list<Copy> copies);
  /// Called after each instruction of run_until() but copies, with its operands and results; its exceptions end the run. Empty: no calls.
  using Watch = std::function<void(const Instruction& at, const Call& call)>;
  void watch(Watch watch) { watch_ = std::move(watch); }
  size_t begin_of_update() const { return plan_.begin_of_update; }
  size_t end() const { return plan_.instructions.size(); }

  /// Binds an input or a borrowed slot to memory, which is borrowed until the next bind().
  void bind(SlotId slot, Address data);
  /// To the host's memory, which kernels only read if the slot is an input. On a device of its own memory an input is copied now, for the
  /// instructions that follow.
  void bind(SlotId slot, const void* data);
  /// An input to memory of the device that the host has written on its own stream: copied within the device, for the instructions that
  /// follow.
  void bind(SlotId slot, Address hosts, HostOrder& order);
  /// Copies the host's bytes to a slot, for the instructions that follow.
  void write(Address to, const void* from, int64_t bytes);
  /// Copies a slot's bytes to the host, after the instructions so far, for which it waits.
  void read(void* to, Address from, int64_t bytes);
  /// Waits for all that has been given, such as the copy of an input that was just bound; a run does so before it returns. Throws as run().
  void finish();
  /// Whether it reads a slot in memory that bind() gives; a stage reads some of a model's inputs, or none.
  bool reads_bound(SlotId slot) const { return calls_.reads_bound(slot); }
  /// A slot's memory. The host writes control slots and reads report slots, between runs; control slots in BeforeMicroBatch too.
  const Operand& slot(SlotId slot) const { return calls_.slot(slot); }
  const Plan& plan() const { return plan_; }
  Backend& backend() const { return storage_.backend(); }
  /// Bytes allocated for an arena, exactly the plan's. Arenas of `storage` are shared by all its executors.
  int64_t allocated(Arena arena) const { return calls_.allocated(arena); }
  /// Bytes that it allocates of the backend's memory in addition to the plan's arenas; 0 where kernels read the host's memory.
  /// `ranks`: those along each axis of the mesh; null: this rank is alone there. Ranks that a network connects need memory for the terms of
  /// sums; ranks that share a device need it for copies of terms; ranks that exchange through the host need none.
  static int64_t input_bytes(const Plan& plan, const Backend& backend, std::initializer_list<const Communicator*> ranks = {});
  /// Bytes of copies of inputs, and of what ranks exchange, on a device of its own memory.
  int64_t copied_bytes() const;

 private:
  bool is_device() const { return inputs_.has_value(); }  // of its own memory, whose kernels may run after the call that gives them
  bool issue_until(Cursor& cursor, size_t end, double deadline, const PrepareMicroBatch& prepare);
  bool is_boundary(size_t at) const;
  bool is_left_out(const Cursor& cursor) const;
  void look_for_cancel(const Cursor& cursor);
  void record(const Instruction& at);

  const KernelSegment* recorded_at(size_t at, size_t end, double deadline) const;
  void launch(const KernelSegment& segment);
  void forget_recordings();

  void execute(const PlannedInstruction& step, bool posts);
  void pass_message(const PlannedInstruction& step);
  void exchange(const PlannedInstruction& step, bool posts);
  template <class Wait>
  double exposed(const Wait& wait);
  double exposed_seconds() const { return ranks_.data == nullptr ? 0 : ranks_.data->exposed_seconds(); }
  Error named(const Error& error, Instruction at) const;
  bool is_valid(Copy copy) const { return is_valid_[static_cast<size_t>(copy)]; }

  void finish_exchanges();
  void give_up();

  const Plan plan_;
  Storage& storage_;
  CancelToken* cancelled_;
  const PlanRanks ranks_;
  PlannedCalls calls_;
  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Stream> exchanging_;  // of a device: of the queue's collectives; null: none
  const std::unique_ptr<Stream> moving_;      // of messages over a network of devices; null: none
  bool exchanges_are_left_ = false;           // work on it that nobody waits for: its run was abandoned
  PlannedInstructions instructions_;
  std::optional<DeviceInputs> inputs_;                       // on a device of its own memory
  std::optional<StateCopies> copies_;                        // of what the plan has in the host's memory
  std::optional<RecordedKernels> recorded_;                  // on a device that can record kernels
  std::array<bool, 4> is_valid_{false, false, false, true};  // by Copy: runs do not make it
  Contributors contributors_;
  Watch watch_;
};

/// Bytes of the arenas, and of the copies for a device, that belong to this executor alone.
int64_t own_bytes(const Executor& executor);

}  // namespace st

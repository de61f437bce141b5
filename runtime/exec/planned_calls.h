// The memory of a plan, and the operands of its instructions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/workers.h"
#include "exec/storage.h"
#include "plan/operand_places.h"
#include "plan/plan.h"

namespace st {

/// One call per node and places of its operands, shared by the micro-batches that have them there (OperandPlaces). All operands have their
/// places at construction, except those in the host's memory (Arena::host), which bind() places.
class PlannedCalls {
 public:
  /// Allocates the plan's arenas; those that outlive it come from `storage`. Borrows all arguments.
  PlannedCalls(const Plan& plan, Storage& storage, Workers& workers);
  PlannedCalls(const PlannedCalls&) = delete;
  PlannedCalls& operator=(const PlannedCalls&) = delete;

  /// For any instruction but copies.
  const Call& of(size_t instruction) const { return *by_instruction_[instruction]; }
  /// Instructions of a node with the same places have the same call.
  int32_t places_of(const Instruction& at) const { return places_.of(at); }

  /// The address of a place; none: in the host's memory that bind() gives, or in an arena that is not there.
  Address address(const Place& place) const;
  /// A slot's memory: in the host's, which to_host() and to_device() take, if its arena is there.
  const Operand& slot(SlotId slot) const { return slots_[static_cast<size_t>(slot)]; }
  /// Places a slot in the host's memory. Borrowed until the next bind().
  void bind(SlotId slot, Address data);
  /// Whether an operand is in the memory that bind() gives.
  bool reads_bound(SlotId slot) const { return !bound_[static_cast<size_t>(slot)].empty(); }
  /// Bytes allocated for an arena.
  int64_t allocated(Arena arena) const;

 private:
  void allocate();
  void make_room();
  Operand operand(const Instruction& at, Value v) const;
  const Call* make_call(const Instruction& at);

  const Plan& plan_;
  Storage& storage_;
  Workers& workers_;
  std::array<std::unique_ptr<Buffer>, kArenas> own_;
  const OperandPlaces places_;
  std::vector<Operand> slots_;
  std::vector<Operand> operands_;  // of all calls, contiguous
  std::vector<Call> calls_;
  std::vector<const Call*> by_instruction_;
  struct Bound {
    Operand* operand;
    int64_t offset;  // bytes: this rank's shard of what is bound
  };
  std::vector<std::vector<Bound>> bound_;  // operands of each slot in the host's memory
};

}  // namespace st

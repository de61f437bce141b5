// The instructions of a plan, each with what runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "exec/exchange_queue.h"
#include "exec/network_exchange.h"
#include "exec/planned_calls.h"
#include "exec/planned_exchange.h"
#include "exec/planned_message.h"
#include "exec/stage_links.h"
#include "plan/plan.h"

namespace st {

/// The other ranks of a plan; null: it has none along that axis.
struct PlanRanks {
  ExchangeQueue* data = nullptr;
  StageLinks* stages = nullptr;
  Communicator* tensor = nullptr;

  /// Throws internal if there is none.
  Communicator& along(MeshAxis axis) const;
};

/// Whether collectives along this axis are on the queue's stream, and may be posted; others are between the kernels.
inline bool is_queued(MeshAxis axis) { return axis == MeshAxis::data || axis == MeshAxis::all; }

struct PlannedInstruction {
  Instruction at;
  Prepared* kernel = nullptr;           // null: not a kernel; all null: a copy (state_copies.h)
  PlannedExchange* exchange = nullptr;  // of collectives and awaits
  PlannedMessage* message = nullptr;    // of messages and releases

  /// Whether what it moves between ranks is ordered with the work of the computing stream, which otherwise must be finished before.
  bool follows() const { return exchange != nullptr ? exchange->follows() : message == nullptr || message->follows(); }
};

class PlannedInstructions {
 public:
  /// Streams of a backend; exchanging: of queued collectives, null on a backend in host memory; moving: of messages that a network of
  /// devices moves, null where none does.
  struct Streams {
    Stream& computing;
    Stream* exchanging;
    Stream* moving;
  };
  /// Borrows all arguments and what they refer to. Throws unsupported with the op if the backend has no kernel for it.
  PlannedInstructions(const Plan& plan, const PlannedCalls& calls, const PlanRanks& ranks, Backend& backend, const Streams& streams);

  const std::vector<PlannedInstruction>& all() const { return all_; }
  /// That of a kernel; null: it is none of the plan's.
  const PlannedInstruction* of(const Prepared* kernel) const;
  /// The addresses of operands have changed.
  void place();
  /// After an error: no other stage reads the memory of this one when this returns.
  void withdraw_messages() noexcept;
  int64_t copied_bytes() const;  // of copies of what ranks exchange

 private:
  Prepared* kernel_of(const Instruction& at, const Call& call);
  PlannedExchange* exchange_of(const Instruction& at, const Call& call, const PlanRanks& ranks, const Streams& streams);
  PlannedMessage* message_of(const Instruction& at, const Call& call, const PlanRanks& ranks, const Streams& streams);
  /// The same for all messages that are sent from one place, or received there.
  int64_t place_of_message(const Instruction& at) const;

  const Plan& plan_;
  const PlannedCalls& calls_;
  Backend& backend_;
  std::map<const Call*, std::unique_ptr<Prepared>> kernels_;
  using Keys = std::pair<int32_t, int64_t>;  // index in the plan's exchanges, and which of the places of its operands
  std::optional<TermRoom> room_;             // of exchanges that a network of devices moves; empty: there are none
  std::map<Keys, std::unique_ptr<PlannedExchange>> exchanges_;
  std::map<Keys, std::unique_ptr<PlannedMessage>> messages_;
  std::vector<PlannedInstruction> all_;
};

}  // namespace st

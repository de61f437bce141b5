#include "exec/planned_instructions.h"

#include <algorithm>

#include "backend/host_call.h"
#include "base/error.h"
#include "plan/accesses.h"
#include "plan/exchange_memory.h"

namespace st {

using Kind = Instruction::Kind;

Communicator& PlanRanks::along(MeshAxis axis) const {
  const bool is_there = axis == MeshAxis::stage ? stages != nullptr : axis == MeshAxis::tensor ? tensor != nullptr : data != nullptr;
  require(is_there, Code::internal, "executor: an exchange needs a communicator of its axis");
  return axis == MeshAxis::stage ? stages->stages() : axis == MeshAxis::tensor ? *tensor : data->ranks();
}

PlannedInstructions::PlannedInstructions(const Plan& plan, const PlannedCalls& calls, const PlanRanks& ranks, Backend& backend,
                                         const Streams& streams)
    : plan_(plan), calls_(calls), backend_(backend) {
  all_.reserve(plan.instructions.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    PlannedInstruction& made = all_.emplace_back(PlannedInstruction{plan.instructions[i]});
    switch (made.at.kind) {
      case Kind::kernel:
        made.kernel = kernel_of(made.at, calls.of(i));
        break;
      case Kind::exchange:
      case Kind::post:
      case Kind::await:
        made.exchange = exchange_of(made.at, calls.of(i), ranks, streams);
        break;
      case Kind::send:
      case Kind::receive:
        made.message = message_of(made.at, calls.of(i), ranks, streams);
        break;
      case Kind::release:
      case Kind::fetch:
      case Kind::write_back:
      case Kind::await_copy:
        break;
    }
  }
  // After the sends, since a release may be of another micro-batch or chunk, whose operand is not the one that messages leave from.
  for (size_t i = 0; i < all_.size(); ++i)
    if (all_[i].at.kind == Kind::release) all_[i].message = message_of(all_[i].at, calls.of(i), ranks, streams);
}

/// The backend's; of the host's own op on a device, a call on copies.
Prepared* PlannedInstructions::kernel_of(const Instruction& at, const Call& call) {
  std::unique_ptr<Prepared>& made = kernels_[&call];
  if (made != nullptr) return made.get();
  const Op op = plan_.program.sections[static_cast<size_t>(at.section)].graph[at.node].op;
  if (!backend_.is_host_memory() && (op == Op::host || op == Op::host_backward)) {
    made = prepare_host_call(backend_, op, call);
  } else {
    require(backend_.has_kernel(op), Code::unsupported, "backend ", backend_.name(), ": no kernel for ", name_of(op));
    made = backend_.prepare(op, call);
  }
  return made.get();
}

/// A post and its await have the same one, which is that of the first of them.
PlannedExchange* PlannedInstructions::exchange_of(const Instruction& at, const Call& call, const PlanRanks& ranks, const Streams& streams) {
  std::unique_ptr<PlannedExchange>& made = exchanges_[{at.exchange, calls_.places_of(at)}];
  if (made == nullptr) {
    const ExchangePlan& of = plan_.exchanges[static_cast<size_t>(at.exchange)];
    Stream* const stream = is_queued(of.axis) ? streams.exchanging : &streams.computing;
    Communicator& group = ranks.along(of.axis);
    if (!room_ && PlannedExchange::is_over_network(of, group, backend_)) room_.emplace(backend_, exchange_memory(plan_));
    made =
        std::make_unique<PlannedExchange>(of, plan_.program, call, group, backend_, stream, &streams.computing, room_ ? &*room_ : nullptr);
  }
  return made.get();
}

PlannedMessage* PlannedInstructions::message_of(const Instruction& at, const Call& call, const PlanRanks& ranks, const Streams& streams) {
  std::unique_ptr<PlannedMessage>& made = messages_[{at.exchange, place_of_message(at)}];
  if (made == nullptr) {
    const ExchangePlan& of = plan_.exchanges[static_cast<size_t>(at.exchange)];
    ranks.along(of.axis);  // which must be there
    made = std::make_unique<PlannedMessage>(of, call, *ranks.stages, backend_, streams.computing, streams.moving);
  }
  return made.get();
}

int64_t PlannedInstructions::place_of_message(const Instruction& at) const {
  return at.kind == Kind::receive ? calls_.places_of(at) : buffer_sent_from(plan_, at);
}

const PlannedInstruction* PlannedInstructions::of(const Prepared* kernel) const {
  const auto found = std::ranges::find(all_, kernel, &PlannedInstruction::kernel);
  return found == all_.end() ? nullptr : &*found;
}

void PlannedInstructions::place() {
  for (const auto& [keys, exchange] : exchanges_) exchange->place();
  for (const auto& [keys, message] : messages_) message->place();
}

void PlannedInstructions::withdraw_messages() noexcept {
  for (const auto& [keys, message] : messages_) message->withdraw();
}

int64_t PlannedInstructions::copied_bytes() const {
  int64_t sum = room_ ? room_->bytes() : 0;
  for (const auto& [keys, exchange] : exchanges_) sum += exchange->copied_bytes();
  for (const auto& [keys, message] : messages_) sum += message->copied_bytes();
  return sum;
}

}  // namespace st

#include "plan/wire_bytes.h"

#include <algorithm>

namespace st {
namespace {

int64_t& place_of(Op op, WireBytes& wire) {
  switch (op) {
    case Op::reduce_scatter:
      return wire.reduce_scatter;
    case Op::all_gather:
      return wire.all_gather;
    case Op::rank_sums:
      return wire.rank_sums;
    default:
      return wire.gather_squares;
  }
}

/// Bytes that this rank sends for an exchange to which the first `contributors` ranks contribute.
int64_t payload(const Program& program, const ExchangePlan& exchange, int64_t contributors) {
  const int64_t ranks = program.mesh.size(exchange.axis);
  int64_t own = exchange.terms * bytes_of(DType::f64), all = 0;
  for (const ExchangePlan::Tensor& tensor : exchange.tensors) {
    const int32_t rank = exchange.axis == MeshAxis::all ? program.mesh_rank() : program.rank;
    each_part_of(exchange, tensor, program, rank, [&](int64_t, int64_t elements) { own += elements * tensor.bytes; });
    if (exchange.op != Op::reduce_scatter) continue;
    const ExchangePlan::Range last = shard_of(tensor, program, program.mesh.data - 1);
    all += (last.begin + last.elements - tensor.first) * tensor.bytes;
  }
  if (exchange.op == Op::reduce_scatter) return program.rank < contributors ? all - own : 0;
  return (ranks - 1) * own;
}

/// Bytes that this rank sends for a collective of values.
int64_t payload_of_values(const Program& program, const ExchangePlan& exchange) {
  const int64_t ranks = program.mesh.tensor;
  const auto share = [&](int64_t rank) { return exchange.elements / ranks * rank + std::min(exchange.elements % ranks, rank); };
  const int64_t own = share(program.tensor_rank + 1) - share(program.tensor_rank), bytes = bytes_of(exchange.dtype);
  const int64_t scattered = (exchange.elements - own) * bytes, gathered = (ranks - 1) * own * bytes;
  if (exchange.op == Op::tensor_sum && !exchange.is_fast && exchange.elements * bytes <= kSummedAtOnce)
    return (ranks - 1) * exchange.elements * bytes;
  return exchange.op == Op::tensor_scatter ? scattered : exchange.op == Op::tensor_gather ? gathered : scattered + gathered;
}

/// Whether this rank takes part in an exchange in a step of so many micro-batches.
bool takes_part(const Program& program, const Instruction& at, int64_t micro_batches) {
  return at.ranks == Instruction::Ranks::all_in_step || at.micro_batch * int64_t{program.mesh.data} + program.rank < micro_batches;
}

}  // namespace

int64_t sent_bytes(const Plan& plan, const Instruction& at, int64_t micro_batches) {
  using Kind = Instruction::Kind;
  if (!at.sends()) return 0;
  const ExchangePlan& exchange = plan.exchanges[static_cast<size_t>(at.exchange)];
  const bool has_own_rows = takes_part(plan.program, at, micro_batches);
  if (at.kind == Kind::send) return has_own_rows ? exchange.elements * bytes_of(exchange.dtype) : 0;
  if (is_of_values(exchange.op)) return has_own_rows ? payload_of_values(plan.program, exchange) : 0;
  const int64_t ranks = plan.program.mesh.data;
  if (at.makes == Copy::gathered) return payload(plan.program, exchange, ranks);
  const bool is_once_a_step = at.ranks == Instruction::Ranks::all_in_step;
  return payload(plan.program, exchange, std::clamp<int64_t>(micro_batches - (is_once_a_step ? 0 : at.micro_batch * ranks), 0, ranks));
}

WireBytes wire_bytes(const Plan& plan, int64_t micro_batches) {
  WireBytes wire;
  for (const Instruction& at : plan.instructions) {
    using Kind = Instruction::Kind;
    if (!at.sends()) continue;
    const Op op = plan.exchanges[static_cast<size_t>(at.exchange)].op;
    int64_t& bytes = at.kind == Kind::send        ? wire.messages
                     : is_of_values(op)           ? wire.tensor
                     : at.makes == Copy::gathered ? wire.copies
                                                  : place_of(op, wire);
    bytes += sent_bytes(plan, at, micro_batches);
    if (at.kind == Kind::send || at.makes == Copy::gathered) continue;
    wire.collectives += !is_of_values(op) || takes_part(plan.program, at, micro_batches) ? 1 : 0;
  }
  return wire;
}

}  // namespace st

#include "plan/wire_bytes.h"

#include <algorithm>

#include "base/shares.h"

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
  const auto share = [&](int64_t rank) { return share_begin(exchange.elements, ranks, rank); };
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

/// The first `contributors` ranks contribute to an exchange of shards or of numbers.
int64_t contributors_of(const Program& program, const Instruction& at, int64_t micro_batches) {
  const int64_t ranks = program.mesh.data;
  if (at.makes == Copy::gathered) return ranks;
  if (at.ranks == Instruction::Ranks::all_in_step) return std::clamp<int64_t>(micro_batches, 0, ranks);
  return std::clamp<int64_t>(micro_batches - at.micro_batch * ranks, 0, ranks);
}

/// A rank among those of its group, and the members [first, last) that are in its node.
struct Neighbourhood {
  int64_t own = 0, size = 1, first = 0, last = 1;
  int64_t members() const { return last - first; }
};

/// The difference of the numbers of two ranks that are next to each other along an axis.
int64_t step_along(const Mesh& mesh, MeshAxis axis) {
  return axis == MeshAxis::data ? mesh.tensor : axis == MeshAxis::stage ? int64_t{mesh.tensor} * mesh.data : 1;
}

int64_t index_along(const Program& program, MeshAxis axis) {
  return axis == MeshAxis::data     ? program.rank
         : axis == MeshAxis::tensor ? program.tensor_rank
         : axis == MeshAxis::stage  ? program.stage
                                    : program.mesh_rank();
}

Neighbourhood neighbourhood_of(const Program& program, MeshAxis axis, int64_t ranks_per_node) {
  const int64_t rank = program.mesh_rank(), in_node = rank % ranks_per_node, step = step_along(program.mesh, axis);
  Neighbourhood of{.own = index_along(program, axis), .size = program.mesh.size(axis)};
  of.first = std::max<int64_t>(0, of.own - in_node / step);
  of.last = std::min(of.size, of.own + (ranks_per_node - 1 - in_node) / step + 1);
  return of;
}

/// Bytes of a collective's elements that the members [first, last) own.
int64_t owned_by(const Program& program, const ExchangePlan& exchange, int64_t first, int64_t last) {
  if (is_of_values(exchange.op)) {
    const int64_t ranks = program.mesh.tensor;
    return (share_begin(exchange.elements, ranks, last) - share_begin(exchange.elements, ranks, first)) * bytes_of(exchange.dtype);
  }
  int64_t bytes = (last - first) * exchange.terms * bytes_of(DType::f64);
  for (const ExchangePlan::Tensor& tensor : exchange.tensors) {
    if (exchange.axis != MeshAxis::all) {  // the shards of neighbours lie next to each other
      const ExchangePlan::Range from = shard_of(tensor, program, static_cast<int32_t>(first));
      const ExchangePlan::Range to = shard_of(tensor, program, static_cast<int32_t>(last - 1));
      bytes += (to.begin + to.elements - from.begin) * tensor.bytes;
      continue;
    }
    const auto count = [&](int64_t, int64_t elements) { bytes += elements * tensor.bytes; };
    for (int64_t rank = first; rank < last; ++rank) each_part_of(exchange, tensor, program, static_cast<int32_t>(rank), count);
  }
  return bytes;
}

LinkBytes to_each(const Neighbourhood& at, int64_t bytes) { return {(at.members() - 1) * bytes, (at.size - at.members()) * bytes}; }

/// Along a ring, of which each member of the node has another one that leaves the node.
LinkBytes in_rings(const Neighbourhood& at, int64_t bytes) {
  const int64_t between = at.members() == at.size ? 0 : bytes / at.members();
  return {bytes - between, between};
}

SentByLink sent_for_message(const Program& program, const ExchangePlan& exchange, int64_t ranks_per_node) {
  const int64_t from = program.mesh_rank(), to = from + (exchange.other - program.stage) * step_along(program.mesh, MeshAxis::stage);
  const int64_t bytes = exchange.elements * bytes_of(exchange.dtype);
  const bool is_here = from / ranks_per_node == to / ranks_per_node;
  const LinkBytes sent{is_here ? bytes : 0, is_here ? 0 : bytes};
  return {sent, sent};
}

/// The bytes of a collective in which this rank takes part.
SentByLink sent_for_collective(const Program& program, const ExchangePlan& exchange, int64_t contributors, int64_t ranks_per_node) {
  const Neighbourhood at = neighbourhood_of(program, exchange.axis, ranks_per_node);
  const auto owned = [&](int64_t first, int64_t last) { return owned_by(program, exchange, first, last); };
  const int64_t all = owned(0, at.size), own = owned(at.own, at.own + 1);
  const auto reduced = [&] {
    const int64_t near = owned(at.first, at.last);
    return LinkBytes{near - own, all - near};
  };
  const int64_t next = (at.own + 1) % at.size;
  const LinkBytes ring_reduced = in_rings(at, all - own), gathered = to_each(at, own);
  const auto ring_gathered = [&] { return in_rings(at, all - owned(next, next + 1)); };
  const auto both = [](LinkBytes sum, const LinkBytes& more) { return sum += more; };
  switch (exchange.op) {
    case Op::reduce_scatter:
      if (at.own >= contributors) return {};
      return {reduced(), contributors == at.size ? ring_reduced : reduced()};
    case Op::tensor_scatter:
      return {reduced(), ring_reduced};
    case Op::tensor_sum:
      return {all <= kSummedAtOnce ? to_each(at, all) : both(reduced(), gathered), both(ring_reduced, ring_gathered())};
    case Op::all_gather:
    case Op::tensor_gather:
      return {gathered, ring_gathered()};
    default:  // few numbers
      return {gathered, gathered};
  }
}

}  // namespace

int64_t sent_bytes(const Plan& plan, const Instruction& at, int64_t micro_batches) {
  using Kind = Instruction::Kind;
  if (!at.sends()) return 0;
  const ExchangePlan& exchange = plan.exchanges[static_cast<size_t>(at.exchange)];
  const bool has_own_rows = takes_part(plan.program, at, micro_batches);
  if (at.kind == Kind::send) return has_own_rows ? exchange.elements * bytes_of(exchange.dtype) : 0;
  if (is_of_values(exchange.op)) return has_own_rows ? payload_of_values(plan.program, exchange) : 0;
  return payload(plan.program, exchange, contributors_of(plan.program, at, micro_batches));
}

SentByLink sent_by_link(const Plan& plan, const Instruction& at, int64_t micro_batches, int64_t ranks_per_node) {
  if (!at.sends()) return {};
  const ExchangePlan& exchange = plan.exchanges[static_cast<size_t>(at.exchange)];
  const bool is_message = at.kind == Instruction::Kind::send;
  if ((is_message || is_of_values(exchange.op)) && !takes_part(plan.program, at, micro_batches)) return {};
  if (is_message) return sent_for_message(plan.program, exchange, ranks_per_node);
  return sent_for_collective(plan.program, exchange, contributors_of(plan.program, at, micro_batches), ranks_per_node);
}

int64_t collective_bytes(const Program& program, const ExchangePlan& exchange) {
  return owned_by(program, exchange, 0, program.mesh.size(exchange.axis));
}

int64_t nodes_of_group(const Program& program, MeshAxis axis, int64_t ranks_per_node) {
  const int64_t step = step_along(program.mesh, axis), size = program.mesh.size(axis);
  if (step >= ranks_per_node) return size;
  const int64_t first = program.mesh_rank() - index_along(program, axis) * step;
  return (first + (size - 1) * step) / ranks_per_node - first / ranks_per_node + 1;
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

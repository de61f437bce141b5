#include "plan/exchange_memory.h"

#include <algorithm>
#include <set>

#include "base/combine.h"
#include "base/shares.h"

namespace st {
namespace {

/// This rank's part of the sums, in the type of the terms.
int64_t own_terms(const ExchangePlan& exchange, const Program& program, int rank, int ranks) {
  const int64_t width = bytes_of(exchange.dtype);
  int64_t bytes = 0;
  switch (exchange.op) {
    case Op::reduce_scatter:
      for (const ExchangePlan::Tensor& tensor : exchange.tensors)
        each_part_of(exchange, tensor, program, rank, [&](int64_t, int64_t elements) { bytes += align_up(elements * tensor.bytes); });
      return bytes;
    case Op::tensor_scatter:
      return align_up(exchange.elements / ranks * width);
    case Op::tensor_sum:
      if (is_of_whole_terms(exchange)) return align_up(exchange.elements * width);
      return align_up((share_begin(exchange.elements, ranks, rank + 1) - share_begin(exchange.elements, ranks, rank)) * width);
    case Op::rank_sums:
      return exchange.terms * kAlignment;  // which are at most so many operands
    default:
      return 0;
  }
}

}  // namespace

int64_t exchange_memory(const ExchangePlan& exchange, const Program& program, int rank, int ranks) {
  if (exchange.axis == MeshAxis::stage || exchange.axis == MeshAxis::all || ranks < 2) return 0;
  const int64_t own = own_terms(exchange, program, rank, ranks);
  if (exchange.is_fast && exchange.axis == MeshAxis::tensor) {
    const bool is_added_elsewhere = exchange.adds || sum_bytes_of(exchange.dtype, exchange.sums) != bytes_of(exchange.dtype);
    return is_added_elsewhere && exchange.op != Op::tensor_sum ? own : 0;
  }
  return own * (ranks - 1);
}

int64_t exchange_memory(const Plan& plan) {
  const Program& program = plan.program;
  int64_t most = 0;
  for (const ExchangePlan& exchange : plan.exchanges) {
    const bool is_tensor = exchange.axis == MeshAxis::tensor;
    most = std::max(most, exchange_memory(exchange, program, is_tensor ? program.tensor_rank : program.rank,
                                          is_tensor ? program.mesh.tensor : program.mesh.data));
  }
  return most;
}

int64_t staged_memory(const Plan& plan) {
  std::set<int32_t> counted;
  int64_t bytes = 0;
  for (const Instruction& at : plan.instructions) {
    if (at.exchange < 0 || plan.exchanges[static_cast<size_t>(at.exchange)].op != Op::rank_sums) continue;
    if (!counted.insert(at.exchange).second) continue;
    const Graph& graph = plan.program.sections[static_cast<size_t>(at.section)].graph;
    const Node& node = graph[at.node];
    for (const Value term : node.in)
      if (std::ranges::find(node.writes, graph.slot_behind(term)) != node.writes.end()) bytes += align_up(graph.type(term).bytes());
  }
  return bytes;
}

}  // namespace st

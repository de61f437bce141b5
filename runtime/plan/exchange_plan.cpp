#include "plan/exchange_plan.h"

#include <algorithm>

#include "base/error.h"
#include "ir/cuts.h"

namespace st {
namespace {

std::string label_of(const std::string& first, size_t count) { return count == 1 ? first : text(first, " and ", count - 1, " more"); }

ExchangePlan::Tensor tensor_of(size_t operand, SlotId cut_like, DType dtype) {
  return {.operand = static_cast<int32_t>(operand), .cut_like = cut_like, .bytes = bytes_of(dtype)};
}

ExchangePlan reduce_scatter(const Program& program, const Graph& graph, const Node& node) {
  const Ints& parameters = node.attrs.ints("parameters");
  ExchangePlan made{.dtype = graph.type(node.in[0]).dtype, .adds = node.attrs.flag("adds")};
  const bool is_narrow = bytes_of(made.dtype) == 2 && !node.writes.empty() && program.slot(node.writes[0]).type.dtype == made.dtype;
  if (is_narrow) made.sums = SumType::own;
  made.label = label_of("gradient." + program.slot(static_cast<SlotId>(parameters[0])).name, parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i)
    made.tensors.push_back(tensor_of(i, static_cast<SlotId>(parameters[i]), graph.type(node.in[i]).dtype));
  return made;
}

ExchangePlan all_gather(const Program& program, const Node& node) {
  const auto slot = [&](SlotId id) -> const Slot& { return program.slot(id); };
  const DType first = slot(node.writes[0]).type.dtype;
  const bool is_mixed = std::ranges::any_of(node.writes, [&](SlotId write) { return slot(write).type.dtype != first; });
  ExchangePlan made{.dtype = is_mixed ? DType::u8 : first};
  const bool is_of_unit = slot(node.writes[0]).role == Role::gathered;
  made.label = label_of(slot(is_of_unit ? slot(node.writes[0]).of : node.writes[0]).name, node.writes.size());
  for (size_t i = 0; i < node.writes.size(); ++i) {
    const SlotId write = node.writes[i];
    made.tensors.push_back(tensor_of(i, cut_like(program, write), slot(write).type.dtype));
  }
  return made;
}

/// All parameters' squares lie in one tensor, one for each block of the norm.
ExchangePlan gather_squares(const Program& program, const Node& node) {
  ExchangePlan made{.dtype = DType::f64, .label = program.slot(node.writes[0]).name};
  int64_t first = 0;
  for (const int64_t id : node.attrs.ints("parameters")) {
    const auto parameter = static_cast<SlotId>(id);
    made.tensors.push_back({.operand = 0, .cut_like = parameter, .bytes = bytes_of(DType::f64), .first = first, .grain = kCutGrain});
    first += norm_blocks(program.slot(parameter).type.shape.elements());
  }
  return made;
}

ExchangePlan rank_sums(const Program& program, const Node& node) {
  ExchangePlan made{.dtype = DType::f64, .adds = node.attrs.flag("adds"), .label = program.slot(node.writes[0]).name};
  for (const SlotId sum : node.writes) made.terms += program.slot(sum).type.shape.elements();
  return made;
}

ExchangePlan message(const Program& program, const Graph& graph, const Node& node) {
  const bool is_sent = node.op == Op::send;
  const SlotId slot = is_sent ? graph.slot_behind(node.in[0]) : node.writes[0];
  const Type type = is_sent ? graph.type(node.in[0]) : own_type(program, program.slot(slot));
  return {.dtype = type.dtype,
          .label = program.slot(slot).name,
          .link = static_cast<int32_t>(node.attrs.integer("link")),
          .other = static_cast<int32_t>(node.attrs.integer("stage")),
          .elements = type.shape.elements()};
}

/// Named by its scope, since values have no names; in the update, by the parameter.
ExchangePlan of_values(const Program& program, const Graph& graph, const Node& node) {
  const Type& whole = node.op == Op::tensor_gather ? node.out[0] : graph.type(node.in[0]);
  ExchangePlan made{.dtype = whole.dtype, .label = program.regions[static_cast<size_t>(node.region)].name};
  made.elements = whole.shape.elements();
  const std::vector<Value>& in = graph[node.in[0].node].in;
  const SlotId gradient = !made.label.empty() || in.empty() ? -1 : graph.slot_behind(in[0]);
  if (gradient >= 0 && program.slot(gradient).role == Role::gradient) made.label = program.slot(program.slot(gradient).of).name;
  return made;
}

ExchangePlan described(const Program& program, const Graph& graph, const Node& node) {
  switch (node.op) {
    case Op::reduce_scatter:
      return reduce_scatter(program, graph, node);
    case Op::all_gather:
      return all_gather(program, node);
    case Op::gather_squares:
      return gather_squares(program, node);
    case Op::rank_sums:
      return rank_sums(program, node);
    case Op::send:
    case Op::receive:
      return message(program, graph, node);
    case Op::tensor_gather:
    case Op::tensor_scatter:
    case Op::tensor_sum:
      return of_values(program, graph, node);
    default:
      fail(Code::internal, text("plan: ", name_of(node.op), " is not a collective"));
  }
}

}  // namespace

ExchangePlan exchange_of(const Program& program, const Graph& graph, const Node& node) {
  ExchangePlan made = described(program, graph, node);
  made.op = node.op;
  made.axis = axis_of(node);
  return made;
}

bool is_of_whole_terms(const ExchangePlan& exchange) {
  const bool is_small = exchange.elements * bytes_of(exchange.dtype) <= kSummedAtOnce;
  return exchange.op == Op::rank_sums || (exchange.op == Op::tensor_sum && (exchange.is_fast || is_small));
}

void use_fast_collectives(std::vector<ExchangePlan>& exchanges) {
  for (ExchangePlan& exchange : exchanges) {
    const bool is_of_shards = exchange.op == Op::reduce_scatter || exchange.op == Op::all_gather;
    exchange.is_fast = exchange.axis != MeshAxis::stage && (is_of_shards || is_of_values(exchange.op));
  }
}

ExchangePlan::Range shard_of(const ExchangePlan::Tensor& tensor, const Program& program, int32_t data_rank) {
  const Cuts cuts = cuts_of(program, tensor.cut_like);
  // Cuts are at multiples of the grain, and at the end.
  const auto element = [&](int32_t of_rank) { return (cuts[of_rank] + tensor.grain - 1) / tensor.grain; };
  return {tensor.first + element(data_rank), element(data_rank + 1) - element(data_rank)};
}

void each_part_of(const ExchangePlan& exchange, const ExchangePlan::Tensor& tensor, const Program& program, int32_t rank,
                  const ExchangePlan::Part& take) {
  if (exchange.axis != MeshAxis::all) {
    const ExchangePlan::Range shard = shard_of(tensor, program, rank);
    if (shard.elements > 0) take(shard.begin, shard.elements);
    return;
  }
  held_by(program, program.slot(tensor.cut_like), rank).each_run([&](int64_t begin, int64_t, int64_t elements) { take(begin, elements); });
}

}  // namespace st

#include "planner/op_work.h"

#include <algorithm>

#include "base/dtype.h"
#include "ir/cuts.h"
#include "plan/wire_bytes.h"

namespace st {
namespace {

double bytes_of_type(const Type& type) { return static_cast<double>(type.bytes()); }

/// Attention's own products are those of cost_of(); its backward recomputes the scores and has five products in place of two.
double flops_of_node(const Graph& graph, const Node& node) {
  if (node.op != Op::attention_backward) return cost_of(graph, node).flops;
  Node forward{.op = Op::attention,
               .in = {node.in[0], node.in[1], node.in[2]},
               .out = {graph.type(node.in[3])},
               .reads = {},
               .writes = {},
               .attrs = node.attrs};
  return 2.5 * cost_of(graph, forward).flops;
}

double slot_bytes(const Program& program, const Graph& graph, const Node& node) {
  double bytes = 0;
  for (const auto* slots : {&node.reads, &node.writes})
    for (const SlotId slot : *slots) bytes += bytes_of_type(access_of(program, graph, node, slot).type);
  return bytes;
}

/// A look-up reads the rows that it needs, not the whole table.
double kernel_bytes(const Program& program, const Graph& graph, const Node& node) {
  double bytes = slot_bytes(program, graph, node);
  const size_t first = node.op == Op::embedding ? 1 : 0;
  for (size_t i = first; i < node.in.size(); ++i) bytes += bytes_of_type(graph.type(node.in[i]));
  for (const Type& type : node.out) bytes += bytes_of_type(type) * (node.op == Op::embedding ? 2 : 1);
  return bytes;
}

double activations_of(const Node& node) {
  return node.op == Op::fused_linear && node.attrs.word("activation") != "none" ? static_cast<double>(node.out[0].shape.elements()) : 0;
}

bool is_product(Op op) { return op == Op::matmul || op == Op::linear || op == Op::fused_linear; }

DType element_of(const Program& program, const Graph& graph, const Node& node) {
  if (!node.in.empty()) return graph.type(node.in[0]).dtype;
  if (!node.writes.empty()) return program.slot(node.writes[0]).type.dtype;
  return node.out.empty() ? DType::f32 : node.out[0].dtype;
}

}  // namespace

OpWork work_of(const Plan& plan, const Instruction& at, int64_t micro_batches) {
  if (at.kind != Instruction::Kind::kernel) return {.flops = 0, .bytes = static_cast<double>(sent_bytes(plan, at, micro_batches))};
  const Graph& graph = plan.program.sections[static_cast<size_t>(at.section)].graph;
  const Node& node = graph[at.node];
  return {.flops = flops_of_node(graph, node), .bytes = kernel_bytes(plan.program, graph, node), .activations = activations_of(node)};
}

std::string rate_name(const Plan& plan, const Instruction& at) {
  const Graph& graph = plan.program.sections[static_cast<size_t>(at.section)].graph;
  const Node& node = graph[at.node];
  std::string name = text(name_of(node.op), '.',
                          name_of(at.kind == Instruction::Kind::kernel ? element_of(plan.program, graph, node)
                                                                       : plan.exchanges[static_cast<size_t>(at.exchange)].dtype));
  if (!is_product(node.op)) return name;
  if (node.op == Op::matmul && node.attrs.flag("transpose_a")) name += ".ta";
  if (node.op == Op::matmul ? node.attrs.flag("transpose_b") : node.attrs.flag("transpose_weight")) name += ".t";
  if (node.op == Op::fused_linear) {
    if (const std::string& activation = node.attrs.word("activation"); activation != "none") name += '.' + activation;
    if (node.attrs.flag("backward")) name += ".backward";
  }
  const SlotId weight = graph.slot_behind(node.in[1]);
  if (weight >= 0 && plan.program.slot(weight).role == Role::packed) name += ".packed";
  return name;
}

int64_t memory_of(const Plan& plan) { return plan.memory.of(Arena::parameters) + plan.memory.beside_parameters(); }

double flops_of(const Plan& plan) {
  double flops = 0;
  for (const Instruction& at : plan.instructions)
    if (at.kind == Instruction::Kind::kernel) {
      const Graph& graph = plan.program.sections[static_cast<size_t>(at.section)].graph;
      flops += flops_of_node(graph, graph[at.node]);
    }
  return flops;
}

}  // namespace st

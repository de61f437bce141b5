#include "passes/scale_loss.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/build.h"

namespace st {

int64_t rows_of_loss(const Program& program, int64_t batch) {
  const Graph& graph = program.find(Phase::forward)->graph;
  int32_t counted = program.loss_count.node;
  while (graph[counted].op == Op::cast || graph[counted].op == Op::reshape) counted = graph[counted].in[0].node;
  const Node& node = graph[counted];
  if (node.in.empty()) return 1;
  const Shape& symbolic = graph.type(node.in[0]).shape;
  check(batch > 0 || !symbolic.is_symbolic(), "scale_loss: a batch has 1 row or more, got ", batch);
  const Shape operand = symbolic.bind(batch);
  const bool has_classes = node.op == Op::cross_entropy || node.op == Op::fused_cross_entropy || node.op == Op::vocabulary_cross_entropy;
  return has_classes ? operand.elements(0, operand.rank() - 1) : operand.elements();
}

void scale_loss(Program& program, int64_t micro_batches) {
  check(program.loss_sum && program.loss_count, "scale_loss: the program has no loss; mark one with st_graph_loss");
  Section* forward = program.find(Phase::forward);
  const auto nominal = static_cast<double>(std::max<int64_t>(1, rows_of_loss(program, program.batch) * micro_batches));
  program.loss_seed = std::exp2(-std::ceil(std::log2(nominal)));

  Builder b(program, static_cast<int32_t>(forward - program.sections.data()));
  const auto report = [&](const char* name, Value value) {
    const SlotId slot = program.add_slot({.name = name, .type = b.type(value), .role = Role::report, .init = {}});
    b.store(value, slot);
    return slot;
  };
  program.step.loss_sum = report("loss_sum", program.loss_sum);
  program.step.loss_count = report("loss_count", program.loss_count);
}

void add_loss_scale(Program& program) {
  program.step.loss_scale =
      program.add_slot({.name = "loss_scale", .type = {.dtype = DType::f64, .shape = {}, .layout = {}}, .role = Role::control, .init = {}});
}

}  // namespace st

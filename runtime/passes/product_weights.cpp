#include "passes/product_weights.h"

namespace st {

std::vector<bool> weights_of_products(const Program& program) {
  if (!program.weights_of_model.empty()) return program.weights_of_model;
  std::vector<bool> multiplied(program.slots.size()), looked_up(program.slots.size());
  for (const Section& section : program.sections) {
    const auto parameter_behind = [&](Value value) {
      const Node* node = &section.graph[value.node];
      while (node->op == Op::cast || node->op == Op::reshape) node = &section.graph[node->in[0].node];
      return program.parameter_of(*node);
    };
    if (section.phase != Phase::forward) continue;
    for (const Node& node : section.graph.nodes) {
      const bool multiplies = node.op == Op::matmul || node.op == Op::linear;
      if (!multiplies && node.op != Op::embedding) continue;
      for (const Value operand : node.in)
        if (const SlotId parameter = parameter_behind(operand); parameter >= 0)
          (multiplies ? multiplied : looked_up)[static_cast<size_t>(parameter)] = true;
    }
  }
  for (size_t i = 0; i < multiplied.size(); ++i) multiplied[i] = multiplied[i] && !looked_up[i];
  return multiplied;
}

}  // namespace st

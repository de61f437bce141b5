#include "passes/loss_terms.h"

#include <vector>

#include "base/error.h"

namespace st {

void set_loss_terms(Program& program, double label_smoothing, double z_loss) {
  if (label_smoothing == 0 && z_loss == 0) return;
  Graph& graph = program.find(Phase::forward)->graph;
  std::vector<bool> reaches(static_cast<size_t>(graph.size()), false);
  if (program.loss_sum) reaches[static_cast<size_t>(program.loss_sum.node)] = true;
  bool found = false;
  const auto set = [](Node& node, const char* name, double value) {
    if (node.attrs.real(name) == 0) node.attrs.set(name, value);
  };
  for (int32_t n = graph.size() - 1; n >= 0; --n) {
    if (!reaches[static_cast<size_t>(n)]) continue;
    Node& node = graph[n];
    for (const Value v : node.in) reaches[static_cast<size_t>(v.node)] = true;
    if (node.op != Op::cross_entropy) continue;
    found = true;
    set(node, "label_smoothing", label_smoothing);
    set(node, "z_loss", z_loss);
  }
  check(found, "label_smoothing ", label_smoothing, " and z_loss ", z_loss,
        " need a loss made of cross_entropy, which this model does not have; leave both keys at 0");
}

}  // namespace st

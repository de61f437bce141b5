#include "model/input_readers.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace st {

bool depends_on(const Program& model, Value result, SlotId input) {
  const auto& nodes = model.find(Phase::forward)->graph.nodes;
  std::vector<bool> is_needed(nodes.size(), false);
  is_needed[static_cast<size_t>(result.node)] = true;
  for (size_t n = nodes.size(); n-- > 0;) {
    if (!is_needed[n]) continue;
    if (std::ranges::count(nodes[n].reads, input) > 0) return true;
    for (const Value& operand : nodes[n].in)
      if (operand.node >= 0) is_needed[static_cast<size_t>(operand.node)] = true;
  }
  return false;
}

std::string readers_of(const Program& model, SlotId input) {
  const bool by_loss = model.loss_sum.node >= 0 && depends_on(model, model.loss_sum, input);
  const auto output = std::ranges::find_if(model.outputs, [&](const Output& o) { return depends_on(model, o.value, input); });
  if (output == model.outputs.end()) return by_loss ? "the loss" : "";
  return text(by_loss ? "the loss and " : "", "output \"", output->name, "\"");
}

}  // namespace st

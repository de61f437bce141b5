#include "passes/for_inference.h"

#include <algorithm>

#include "base/error.h"
#include "ir/build.h"
#include "passes/dropout.h"
#include "passes/rewrite.h"
#include "passes/scale_loss.h"

namespace st {

void drop_dead(Program& program, Section& section) {
  std::vector<bool> live(static_cast<size_t>(section.graph.size()), false);
  for (int32_t n = section.graph.size() - 1; n >= 0; --n) {
    if (!section.graph[n].writes.empty()) live[static_cast<size_t>(n)] = true;
    if (live[static_cast<size_t>(n)])
      for (const Value v : section.graph[n].in) live[static_cast<size_t>(v.node)] = true;
  }
  const bool is_forward = section.phase == Phase::forward;  // where outputs and the loss are
  const auto dead = [&](Value v) { return is_forward && v && !live[static_cast<size_t>(v.node)]; };
  std::erase_if(program.outputs, [&](const Output& output) { return dead(output.value); });
  for (Output& output : program.outputs)
    if (dead(output.count)) output.count = {};
  if (dead(program.loss_sum)) program.loss_sum = program.loss_count = {};
  if (dead(program.loss_count)) program.loss_count = {};

  Rewrite rewrite(program, section);
  for (int32_t n = 0; n < rewrite.old().size(); ++n)
    if (live[static_cast<size_t>(n)]) rewrite.keep(n);
  rewrite.finish();
}

void for_inference(Program& program, std::span<const std::string> outputs, bool loss) {
  Section& section = *program.find(Phase::forward);
  remove_dropout(program, [](const Node&) { return true; });
  if (loss) scale_loss(program, 1);
  Builder b(program, static_cast<int32_t>(&section - program.sections.data()));
  for (const auto& name : outputs) {
    const auto found = std::ranges::find(program.outputs, name, &Output::name);
    about_tensor(
        name, [&] { require(found != program.outputs.end(), Code::not_found, "predict: the model has no output named \"", name, "\""); });
    const auto store = [&](const std::string& slot, Value value) {
      b.store(value, program.add_slot({.name = slot, .type = b.type(value), .role = Role::output, .init = {}}));
    };
    store("output." + name, found->value);
    if (found->count) store("output_count." + name, found->count);
  }
  drop_dead(program, section);
}

}  // namespace st

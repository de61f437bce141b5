#include "passes/first_norm.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "ir/build.h"
#include "passes/gradient_slots.h"

namespace st {

void first_norm(Program& program) {
  Section* section = program.find(Phase::backward);
  require(section != nullptr, Code::internal, "first_norm: no backward section; call autodiff() first");
  Builder b(program, static_cast<int32_t>(section - program.sections.data()));
  const int32_t begin = b.graph().size();

  std::vector<Value> gradients;
  for (const std::vector<SlotId>& uses : gradient_slots(program)) {
    Value sum = b.load(uses[0]);
    for (size_t use = 1; use < uses.size(); ++use) sum = b.add(sum, b.load(uses[use]));
    gradients.push_back(sum);
  }
  const auto report = [&](Value value, const std::string& name) {
    b.store(value, program.add_slot({.name = name, .type = b.type(value), .role = Role::report, .init = {}}));
  };
  report(b(Op::gradient_norm, gradients), "first_norm");
  report(b.load(program.slot_named("loss_count")), "first_loss_count");
  for (int32_t n = begin; n < b.graph().size(); ++n) b.graph()[n].when = When::first;
}

}  // namespace st

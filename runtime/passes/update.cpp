#include "passes/update.h"

#include "base/error.h"
#include "ir/build.h"

namespace st {

void update(Program& program, const OptimizerChoice& optimizer) {
  Section* section = program.find(Phase::update);
  require(section != nullptr, Code::internal, "update: no update section; call clip() first");
  Builder b(program, static_cast<int32_t>(section - program.sections.data()));
  const SlotId rates =
      program.add_slot({.name = "rates", .type = {.dtype = DType::f64, .shape = {2}, .layout = {}}, .role = Role::control, .init = {}});
  const Value factor = b.load(program.slot_named("factor"));
  const Value skip = b.load(program.slot_named("skipped"));
  const Value rate = b.load(rates);

  const auto count = static_cast<SlotId>(program.slots.size());
  for (SlotId parameter = 0; parameter < count; ++parameter) {
    const Slot slot = program.slots[static_cast<size_t>(parameter)];
    const SlotId gradient = slot.role == Role::parameter ? program.slot_named("gradient." + slot.name) : -1;
    if (gradient < 0) continue;
    std::vector<SlotId> slots = {parameter};
    for (const auto& moment : optimizer.moments)
      slots.push_back(
          program.add_slot({.name = moment + "." + slot.name, .type = slot.type, .role = Role::optimizer, .init = {}, .of = parameter}));
    b.update(optimizer.op, {b.load(gradient), factor, skip, rate}, slots, optimizer.attrs);
  }
}

}  // namespace st

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
    for (const auto& moment : optimizer.moments) {
      const std::string name = moment + "." + slot.name;
      const SlotId kept = program.slot_named(name);
      const bool is_kept = kept >= 0 && program.slots[static_cast<size_t>(kept)].role == Role::optimizer;
      slots.push_back(is_kept ? kept
                              : program.add_slot({.name = name, .type = slot.type, .role = Role::optimizer, .init = {}, .of = parameter}));
    }
    b.update(optimizer.op, {b.load(gradient), factor, skip, rate}, slots, optimizer.attrs);
  }
}

void keep_moments(Program& program, const Program& of) {
  for (const Slot& slot : of.slots)
    if (slot.role == Role::optimizer) program.add_slot(slot);
}

}  // namespace st

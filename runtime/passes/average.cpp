#include "passes/average.h"

#include "base/error.h"
#include "ir/build.h"
#include "ir/cuts.h"

namespace st {

SlotId average_of(const Program& program, SlotId parameter) {
  const SlotId slot = program.slot_named("average." + program.slot(parameter).name);
  return slot >= 0 && program.slot(slot).role == Role::optimizer ? slot : -1;
}

void average(Program& program, double decay) {
  const Section* section = program.find(Phase::update);
  const StepSlotIds& step = program.step;
  require(section != nullptr && step.skipped >= 0 && step.rates >= 0, Code::internal, "average: there are no updates; call update() first");
  Builder b(program, static_cast<int32_t>(section - program.sections.data()));
  const Value skip = b.load(step.skipped), rate = b.load(step.rates);
  const auto count = static_cast<SlotId>(program.slots.size());
  for (SlotId parameter = 0; parameter < count; ++parameter) {
    const auto at = static_cast<size_t>(parameter);
    if (program.slots[at].role != Role::parameter || !is_here(program, program.slots[at])) continue;
    SlotId kept = average_of(program, parameter);
    bool is_of_shard = program.slots[at].update.is_flat();
    if (kept < 0) {
      const std::string& name = program.slots[at].name;
      if (program.slot_named("gradient." + name) < 0) continue;
      if (is_of_shard && !has_shard(program, parameter)) continue;
      Type type = program.slots[at].type;
      type.layout[MeshAxis::data] = program.slots[at].update;
      kept = program.add_slot({.name = "average." + name, .type = type, .role = Role::optimizer, .init = {}, .of = parameter});
    } else if (program.slot(kept).type.layout.is_flat()) {  // another plan's
      require(is_cut(program, parameter), Code::unsupported, "average: \"", program.slots[at].name,
              "\" has a sharded average, but no output depends on the parameter; use zero 0 or ema_decay 0");
      is_of_shard = true;
    }
    b.average(is_of_shard ? b.load_shard(parameter) : b.load(parameter), skip, rate, kept, decay);
  }
}

}  // namespace st

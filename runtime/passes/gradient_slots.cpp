#include "passes/gradient_slots.h"

#include "base/error.h"
#include "ir/cuts.h"
#include "passes/stage_sums.h"

namespace st {

std::vector<std::vector<SlotId>> gradient_slots(const Program& program) {
  std::vector<std::vector<SlotId>> all;
  for (const Slot& parameter : program.slots) {
    if (parameter.role != Role::parameter) continue;
    const SlotId first = program.slot_named("gradient." + parameter.name);
    if (first < 0) continue;
    std::vector<SlotId> uses = {first};
    for (int use = 1;; ++use) {
      const SlotId more = program.slot_named(text("gradient.", parameter.name, ".use", use));
      if (more < 0) break;
      uses.push_back(more);
    }
    all.push_back(std::move(uses));
  }
  return all;
}

Builder open_update(Program& program) {
  if (const Section* opened = program.find(Phase::update)) return {program, static_cast<int32_t>(opened - program.sections.data())};
  program.sections.push_back({.graph = {}, .phase = Phase::update});
  Builder b(program, static_cast<int32_t>(program.sections.size()) - 1);
  for (const std::vector<SlotId>& uses : gradient_slots(program)) {
    const SlotId parameter = program.slot(uses[0]).of;
    const bool is_of_shards = is_cut(program, parameter);
    if (is_of_shards && !has_shard(program, parameter)) continue;
    for (size_t use = 1; use < uses.size(); ++use) add_use(b, uses[use], uses[0], is_of_shards);
  }
  return b;
}

bool is_of_one_use(const Program& program, SlotId gradient) {
  const SlotId parameter = program.slot(gradient).of;
  return program.slot_named(text("gradient.", program.slot(parameter).name, ".use1")) < 0;
}

}  // namespace st

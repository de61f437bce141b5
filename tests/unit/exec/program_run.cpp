#include "program_run.h"

#include <random>

#include "backend/kernel_side.h"
#include "backend/needs.h"
#include "base/combine.h"
#include "base/error.h"
#include "models/initialize.h"
#include "plan/memory_plan.h"

namespace st {

Plan plan_for_reference(Program program, const StepOrder& order) {
  const MachineProfile machine{.device = "reference", .kernel_class = "reference"};
  MemoryLayout memory = memory_plan(program, order, [&](const Program&, const Section& section, const Node& node) {
    std::vector<Type> in;
    for (const Value v : node.in) in.push_back(section.graph.type(v));
    return workspace_need(machine, node.op, in, node.out, node.attrs);
  });
  return make_plan(std::move(program), std::move(memory), order);
}

ProgramRun::ProgramRun(Program program, const StepOrder& order)
    : executor_(plan_for_reference(std::move(program), order), storage_, workers_, nullptr) {
  for (const Slot& slot : this->program().slots)
    if (slot.role == Role::parameter) initialize({data<float>(slot.name), static_cast<size_t>(slot.type.shape.elements())}, slot, 7);
  if (this->program().slot_named("rates") >= 0) data<double>("rates")[1] = 1;
}

SlotId ProgramRun::slot(const std::string& name) const {
  const SlotId id = program().slot_named(name);
  require(id >= 0, Code::not_found, "the program has no slot \"", name, "\"");
  return id;
}

std::vector<float> ProgramRun::floats(const std::string& name) const {
  const Operand& operand = executor_.slot(slot(name));
  std::vector<float> values(static_cast<size_t>(operand.elements()));
  widen(operand.dtype, as<const std::byte>(operand), reinterpret_cast<std::byte*>(values.data()), operand.elements());
  return values;
}

std::vector<float> some_floats(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> between(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = between(random);
  return values;
}

}  // namespace st

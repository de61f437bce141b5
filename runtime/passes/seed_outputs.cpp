#include "passes/seed_outputs.h"

#include "ir/build.h"
#include "passes/for_inference.h"

namespace st {
namespace {

constexpr std::string_view kOutput = "output.", kOutputGradient = "output_gradient.";

SlotId add_number(Program& program, const char* name) {
  return program.add_slot({.name = name, .type = {.dtype = DType::f64, .shape = {}, .layout = {}}, .role = Role::control, .init = {}});
}

}  // namespace

bool is_metric(std::string_view output) { return output.starts_with("metric."); }

std::vector<Seed> seed_outputs(Program& program, bool own_loss) {
  Section& forward = *program.find(Phase::forward);
  Builder b(program, static_cast<int32_t>(&forward - program.sections.data()));
  for (Output& output : program.outputs) {
    // A parameter that is an output itself has no op that a gradient could come from.
    const bool is_bare = b.graph()[output.value.node].op == Op::load && is_floating(b.type(output.value).dtype);
    if (is_bare) output.value = b.scale(output.value, 1);
    b.store(output.value,
            program.add_slot({.name = std::string(kOutput) + output.name, .type = b.type(output.value), .role = Role::output, .init = {}}));
  }
  if (!own_loss) drop_dead(program, forward);

  std::vector<Seed> seeds;
  for (const Output& output : program.outputs) {
    const Type& type = b.type(output.value);
    if (is_metric(output.name) || !is_floating(type.dtype)) continue;
    const SlotId slot =
        program.add_slot({.name = std::string(kOutputGradient) + output.name, .type = type, .role = Role::input, .init = {}});
    seeds.push_back({output.value, slot});
  }
  if (own_loss) {
    program.step.own_loss_seed = add_number(program, "own_loss_seed");
    seeds.push_back({program.loss_sum, program.step.own_loss_seed});
  }
  program.step.gradient_unit = add_number(program, "gradient_unit");
  return seeds;
}

void find_seeds(const Program& program, std::vector<Seed>& seeds) {
  for (Seed& seed : seeds) {
    seed.value = program.loss_sum;
    if (seed.slot == program.step.own_loss_seed) continue;
    const std::string output = std::string(kOutput) + program.slot(seed.slot).name.substr(kOutputGradient.size());
    const SlotId stored = program.slot_named(output);
    for (const Node& node : program.find(Phase::forward)->graph.nodes)
      if (node.op == Op::store && node.writes[0] == stored) seed.value = node.in[0];
  }
}

}  // namespace st

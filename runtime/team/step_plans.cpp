#include "team/step_plans.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "exec/executor.h"
#include "plan/memory_summary.h"
#include "recipe/can_offload.h"
#include "recipe/can_shard_masters.h"
#include "recipe/kernel_needs_of.h"

namespace st {

Plan StepPlans::plan(const Recipe& by, const PlanOptions& with) const {
  return plan_training(model.program(), by, kernel_needs(context().backend(), threads), with);
}

/// Bytes that the device has to have for it.
int64_t StepPlans::need(const Plan& plan) const {
  return plan.memory.beside_parameters() + (is_held() ? 0 : plan.memory.on_device(Arena::parameters)) +
         Executor::input_bytes(plan, context().backend(), {ranks.data, ranks.tensor, ranks.stages});
}

void StepPlans::require_room(const Plan& plan, bool with_fixes) const {
  const auto more = [&](int64_t there) {
    const int64_t share = there / options.sharers;  // ranks that still have to allocate take as much
    return with_fixes ? text(". The step's largest parts: ", memory_summary(plan), text_of(fixes(plan, share), share)) : std::string();
  };
  context().require_memory("trainer: a training step", need(plan), options.memory, more);
  require_room_on_host(plan, recipe, is_held());
}

/// `has_parameters`: the host has them already.
void StepPlans::require_room_on_host(const Plan& plan, const Recipe& by, bool has_parameters) const {
  const int64_t on_host = plan.memory.host_bytes();
  const bool are_on_host = plan.memory.on_host[static_cast<size_t>(Arena::parameters)];
  const int64_t parameters = are_on_host ? plan.memory.of(Arena::parameters) : 0;
  const bool have_copies = threads_have_copies(mesh_of(by), by.zero, are_on_host);
  const int64_t known = by.stages > 1 ? on_host : on_host * options.sharers;  // other stages have other tensors
  context().require_host_memory("trainer: a training step", on_host - (has_parameters ? parameters : 0),
                                known - (has_parameters || !have_copies ? parameters : 0));  // the model has whole ones
}

/// As a trainer would plan with another recipe where `there` bytes are available. Held parameters are counted as what the other plan has
/// more or less of them. Where recompute auto fits nothing, that of a step which recomputes all: about the least, found without a search.
int64_t StepPlans::need_by(Recipe by, int64_t there, int64_t held) const {
  const Backend& backend = context().backend();
  require_offload(by, !backend.is_host_memory(), backend.name());
  if (by.stages == 1) by.accumulate = std::min<int64_t>(by.accumulate, 2);  // a third micro-batch takes no more memory than a second
  PlanOptions with = options;
  with.memory = there;
  with.print = {};
  with.begun = nullptr;
  with.recompute_scopes = nullptr;
  with.skip.emplace_back("pack_weights");
  with.parameters_on_host = model.is_on_host() || moves_parameters(by, !backend.is_host_memory());
  with.shares_masters = options.shares_masters && !with.parameters_on_host;
  with.shards_masters = options.may_shard_masters && can_shard_masters(by, with.parameters_on_host);
  const auto need_of = [&](const Recipe& planned) {
    const Plan other = plan(planned, with);
    require_room_on_host(other, planned, is_held() && model.is_on_host());
    return need(other) + (is_held() ? other.memory.on_device(Arena::parameters) - held : 0);
  };
  if (by.recompute != "auto" || by.recompute_budget > 0) return need_of(by);
  Recipe least = by;
  least.recompute = "full";
  const int64_t of_least = need_of(least);
  if (of_least > there / 4 * 5) return of_least;
  try {
    return need_of(by);
  } catch (const Error& refusal) {
    if (refusal.code() != Code::out_of_memory) throw;
    return std::max(of_least, there + 1);
  }
}

/// Those found within a few seconds, since other ranks may wait for this one's refusal.
std::vector<MemoryFix> StepPlans::fixes(const Plan& plan, int64_t there) const {
  constexpr double kMostSeconds = 4;
  const double end = os::seconds() + kMostSeconds;
  const int64_t held = plan.memory.on_device(Arena::parameters);
  return memory_fixes(recipe, need(plan), there, [&](const Recipe& by) {
    require(os::seconds() < end, Code::unsupported, "no time is left for this change");
    return need_by(by, there, held);
  });
}

Plan StepPlans::within(const PlanOptions& with) const {
  try {
    return plan(recipe, with);
  } catch (const Error& refusal) {
    const bool is_autos = recipe.recompute == "auto" && recipe.recompute_budget == 0 && with.recompute_scopes == nullptr;
    if (!is_autos || refusal.code() != Code::out_of_memory) throw;
    PlanOptions without = with;
    without.memory = PlanOptions::kUnlimited;
    without.print = {};
    without.begun = nullptr;
    without.skip.emplace_back("pack_weights");
    Error error(refusal.code(), refusal.message() + text_of(fixes(plan(recipe, without), with.memory), with.memory));
    error.place = refusal.place;
    throw error;
  }
}

Plan StepPlans::that_fits() const {
  PlanOptions with = options;
  const int64_t spare = context().spare_memory();
  with.memory = std::min(with.memory, spare == Context::kUnlimited ? spare : spare / with.sharers);
  Plan fitting = within(with);
  const bool is_packed = fitting.memory.of(Arena::packed) > 0;
  try {
    require_room(fitting, !is_packed);
    return fitting;
  } catch (const Error& error) {
    if (!is_packed || error.code() != Code::out_of_memory) throw;
  }
  with.skip.emplace_back("pack_weights");
  fitting = plan(recipe, with);
  require_room(fitting, true);
  return fitting;
}

}  // namespace st

#include "planner/candidate.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "planner/planned_stages.h"

namespace st {
namespace {

constexpr std::string_view kKeys[] = {"stages",     "tensor",        "schedule",  "zero",   "batch",
                                      "accumulate", "micro_batches", "recompute", "offload"};

PassSeconds passes_of(const RankTrace& trace) {
  PassSeconds passes;
  for (const TraceEvent& event : trace.events) {
    if (event.kind != TraceEvent::Kind::compute || event.section < 0) continue;
    const Phase phase = trace.phases[static_cast<size_t>(event.section)];
    if (phase == Phase::update) continue;
    (phase == Phase::forward ? passes.forward : passes.backward) += event.seconds;
  }
  return passes;
}

void add_stage(const PlannedRun& run, int32_t stage, Candidate& to) {
  const RankPlan plan = plan_of_rank(run, rank_at(run.mesh(), {.data = 0, .tensor = 0, .stage = stage}));
  ++to.plans;
  to.device_total = std::max(to.device_total, plan.numbers.memory.device_total());
  const StepShares shares = plan.shares(run.recipe);
  if (shares.all() > to.step_seconds) {
    to.step_seconds = shares.all();
    to.shares = shares;
    to.passes = passes_of(plan.trace);
  }
  const MemoryLayout& memory = plan.plan.memory;
  if (stage == 0) to.by_rows = memory.of(Arena::activations) + memory.of(Arena::stash) + memory.of(Arena::workspace);
}

}  // namespace

std::optional<Candidate> candidate_of(const PlannedRun& run, const Recipe& recipe) {
  PlannedRun other = run;
  other.recipe = recipe;
  const int64_t most = other.device_memory_of_rank();
  Candidate made{.recipe = recipe, .changes = {}, .shares = {}, .passes = {}};
  try {
    const int32_t last = other.mesh().stage - 1;
    add_stage(other, 0, made);
    if (last > 0 && made.device_total <= most) add_stage(other, last, made);
    made.knows_all_stages = last == 0;
  } catch (const Error& error) {
    if (is_of_recipe(error)) return std::nullopt;
    throw;
  }
  made.fits = made.device_total <= most;
  for (const std::string_view key : kKeys)
    if (recipe.get(key) != run.recipe.get(key)) made.changes.push_back({std::string(key), recipe.get(key), run.recipe.get(key)});
  return made;
}

void know_all_stages(const PlannedRun& run, Candidate& of, Workers& workers) {
  PlannedRun other = run;
  other.recipe = of.recipe;
  of.knows_all_stages = true;
  try {
    BegunPlans begun;
    const RankPlan first = plan_of_rank(other, 0, &begun);
    const std::vector<PlannedStage> stages = planned_stages(other, first, 0, begun, workers);
    of.plans += std::ssize(stages);
    of.device_total = fullest(stages).memory.device_total();
    of.fits = of.device_total <= other.device_memory_of_rank();
    const auto computing = [](const PlannedStage& stage) { return shares_alone(stage.trace).computing; };
    const PlannedStage& slowest = *std::ranges::max_element(stages, {}, computing);
    of.shares = shares_of(stages, first.plan.program.links, slowest.stage);
    of.passes = passes_of(slowest.trace);
    of.step_seconds = of.shares.all();
  } catch (const Error& error) {
    if (!is_of_recipe(error)) throw;
    of.fits = false;
  }
}

std::string Candidate::text() const {
  std::string out = st::text(recipe.data_ranks(), " data x ", recipe.tensor, " tensor x ", recipe.stages, " stages, zero ", recipe.zero,
                             ", batch ", recipe.batch, " x ", recipe.accumulate, ", recompute ", recipe.recompute);
  if (recipe.stages > 1) out += ", " + recipe.schedule;
  if (recipe.offload != "none") out += ", offload " + recipe.offload;
  const auto percent = [&](double seconds) { return std::lround(100 * seconds / step_seconds); };
  out += st::text(": computing ", percent(shares.computing), " %");
  for (size_t axis = 0; axis < shares.exchange.size(); ++axis)
    if (percent(shares.exchange[axis]) > 0)
      out += st::text(", exchange along ", name_of(static_cast<MeshAxis>(axis)), " ", percent(shares.exchange[axis]), " %");
  if (percent(shares.bubble) > 0) out += st::text(", bubble ", percent(shares.bubble), " %");
  return out;
}

}  // namespace st

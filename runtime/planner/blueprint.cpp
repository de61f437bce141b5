#include "planner/blueprint.h"

#include <set>
#include <utility>

namespace st {
namespace {

PlannedRun with_best(PlannedRun run, const SearchResult& found) {
  if (!found.best.empty()) run.recipe = found.best.front().recipe;
  return run;
}

constexpr int32_t kMostShown = 32;
constexpr size_t kMostSpans = 400'000;

/// One rank of each stage; a few ranks: all of them.
std::set<int32_t> shown_ranks(const PlannedRun& run, int32_t rank) {
  const Mesh mesh = run.mesh();
  std::set<int32_t> shown = {rank};
  for (int32_t each = 0; each < mesh.ranks() && mesh.ranks() <= kMostShown; ++each) shown.insert(each);
  for (int32_t stage = 0; stage < mesh.stage; ++stage) shown.insert(rank_at(mesh, {.data = 0, .tensor = 0, .stage = stage}));
  return shown;
}

/// The same work on each data rank, with 1, 2, 4.. times as many of them. A step takes `factor` times as long as that of the first rank
/// alone, since a pipeline has other stages.
std::vector<ScalePoint> scaled(const PlannedRun& run, int64_t most, double factor) {
  std::vector<ScalePoint> points;
  const int64_t of_each = run.recipe.stages * run.recipe.tensor;
  for (int64_t ranks = std::max<int64_t>(of_each, 8); ranks <= most; ranks *= 2) {
    if (ranks % of_each != 0) continue;
    PlannedRun other = run;
    other.recipe.accumulate = run.recipe.step_rounds();
    other.recipe.micro_batches = other.recipe.global_batch = 0;
    other.recipe.ranks = ranks;
    points.push_back({ranks, factor * plan_of_rank(other, 0).step_seconds(other.recipe)});
  }
  return points;
}

}  // namespace

Blueprint::Blueprint(PlannedRun run, const BlueprintWishes& wishes, Workers& workers)
    : rank_(wishes.rank),
      found_(wishes.searches ? search(run, workers) : SearchResult()),
      run_(with_best(std::move(run), found_)),
      of_rank_(plan_of_rank(run_, rank_, &begun_)),
      advised_(rank_) {
  if (wishes.simulates) simulate(wishes.troubles);
  stages_ = all_ ? planned_stages(*all_, of_rank_.at) : planned_stages(run_, of_rank_, rank_, begun_, workers);
  begun_.clear();
  const auto of_pipeline = [&](std::span<const PlannedStage> stages) {
    return shares_of(stages, of_rank_.plan.program.links, of_rank_.at.stage);
  };
  shares_ = stages_.size() > 1 ? of_pipeline(stages_) : of_rank_.shares(run_.recipe);
  if (run_.recipe.ranks > 1 && (wishes.simulates || wishes.advises.value_or(false))) {
    on_one_rank_ = seconds_on_one_rank(run_);
    limit_ = speed_limit(run_, of_rank_, shares_, stages_.size() > 1 ? of_pipeline(at_twice_the_rate(stages_)).all() : 0);
  }
  if (wishes.advises.value_or(!fits())) advise(workers);
  if (wishes.scales_to > 0) scaling_ = scaled(run_, wishes.scales_to, shares_.all() / of_rank_.step_seconds(run_.recipe));
  if (wishes.failures) {
    const int64_t on_node = std::max<int64_t>(1, run_.machine.ranks_per_node), nodes = (run_.recipe.ranks + on_node - 1) / on_node;
    goodput_ = goodput(step_ ? step_->seconds() : shares_.all(), nodes, *wishes.failures);
  }
}

void Blueprint::simulate(const std::vector<Trouble>& troubles) {
  all_.emplace(run_);
  const std::set<int32_t> shown = shown_ranks(run_, rank_);
  step_ = all_->simulate(troubles, [&](const SimulatedSpan& span) {
    if (shown.contains(span.rank) && spans_.size() < kMostSpans) spans_.push_back(span);
  });
}

void Blueprint::advise(Workers& workers) {
  const PlannedStage& most = fullest(stages_);
  const bool is_other = !fits(most.memory) && most.stage != of_rank_.at.stage;
  if (is_other) advised_ = most.rank;
  if (is_other) {
    BegunPlans begun;
    const RankPlan other = plan_of_rank(run_, advised_, &begun);
    fixes_ = fixes_for(run_, other, advised_, step_seconds(run_, other, advised_, begun, workers), workers);
    return;
  }
  fixes_ = fixes_for(run_, of_rank_, rank_, shares_.all(), workers);
  const double now = shares_.all();
  for (Fix& fix : fixes_) fix.speedup = on_one_rank_ / (now * (1 + fix.slower));
}

PlanPage Blueprint::shown(std::span<const MemoryMoment> memory) const {
  PlanPage page{.title = st::text("Plan of rank ", rank_, " of ", run_.recipe.ranks),
                .text = text(),
                .run = run_,
                .of_rank = of_rank_,
                .shares = shares_};
  page.memory = memory;
  page.stages = stages_;
  page.spans = spans_;
  page.scaling = scaling_;
  if (all_) page.classes = all_->classes();
  return page;
}

std::string Blueprint::page() const {
  const std::vector<MemoryMoment> memory = memory_curve(of_rank_.plan, of_rank_.trace);
  return html_of(shown(memory));
}

std::string Blueprint::trace() const {
  require(step_.has_value(), Code::wrong_state, "plan: there is no timeline; plan with simulate");
  return chrome_trace(shown({}));
}

}  // namespace st

#include "planner/blueprint.h"

#include <utility>

namespace st {
namespace {

PlannedRun with_best(PlannedRun run, const SearchResult& found) {
  if (!found.best.empty()) run.recipe = found.best.front().recipe;
  return run;
}

}  // namespace

Blueprint::Blueprint(PlannedRun run, const BlueprintWishes& wishes)
    : rank_(wishes.rank),
      found_(wishes.searches ? search(run) : SearchResult()),
      run_(with_best(std::move(run), found_)),
      of_rank_(plan_of_rank(run_, rank_)) {
  if (wishes.advises.value_or(!fits())) fixes_ = fixes_for(run_, of_rank_, rank_);
  if (wishes.simulates) {
    all_.emplace(run_);
    step_ = all_->simulate(wishes.troubles);
  }
  if (wishes.failures) {
    const int64_t on_node = std::max<int64_t>(1, run_.machine.ranks_per_node), nodes = (run_.recipe.ranks + on_node - 1) / on_node;
    goodput_ = goodput(step_ ? step_->seconds() : of_rank_.step_seconds(run_.recipe), nodes, *wishes.failures);
  }
}

}  // namespace st

// A plan: what one rank of a run would hold, send and wait for, on a machine that need not be there.
#pragma once

#include <scaletrain/plan.h>

#include <scaletrain/model.hpp>
#include <scaletrain/recipe.hpp>
#include <string>

namespace scaletrain {

/// Keeps neither the model nor the recipe: they may be closed or changed afterwards.
class Plan : public detail::Handle<st_plan, st_plan_destroy> {
 public:
  /// options: {"machine": "a100-80g", "rank": 3, "auto": true}; keys and defaults are in plan.h.
  Plan(const Model& model, const Recipe& recipe, const std::string& options = "") : Handle(detail::Access::host(model)) {
    done(st_plan_create(model.get(), recipe.get(), options.c_str(), out()));
  }

  /// {"memory":{..},"wire_bytes":..,"step_seconds":..,"fits":..,"fixes":[..],..}; capi/cli/README.md has all keys.
  std::string json() const { return Handle::text(st_plan_json); }
  /// The same for people.
  std::string text() const { return Handle::text(st_plan_text); }
  /// One HTML page: memory over a step by kind; with simulate, the timeline of the stages.
  std::string report() const { return Handle::text(st_plan_report); }
  /// The simulated step for chrome://tracing and Perfetto, as JSON; wrong_state without simulate.
  std::string trace() const { return Handle::text(st_plan_trace); }
  /// The recipe that is planned, as JSON; with auto, the one found.
  std::string recipe() const { return Handle::text(st_plan_recipe); }
};

}  // namespace scaletrain

#include <scaletrain/plan.h>

#include <algorithm>
#include <limits>

#include "backend/needs.h"
#include "guard.h"
#include "model_object.h"
#include "plan_object.h"
#include "plan_options.h"
#include "planner/calibration.h"
#include "planner/forecast.h"
#include "recipe_object.h"
#include "trainer_object.h"

using namespace st;
using namespace st::capi;

st_status st_plan_create(st_model* model, st_recipe* recipe, const char* options, st_plan** plan) {
  return guard([&] {
    given(plan, "st_plan_create: plan");
    const auto of = peek(model);
    PlannedRun run{.model = of->model->program(), .recipe = find(recipe)->recipe, .machine = {}};
    require(static_cast<bool>(run.model.loss_sum), Code::unsupported,
            "st_plan_create: the model has no loss of its own; give its graph one (st_graph_loss), whose step can be planned");
    const Context& context = of->model->context();
    const BlueprintWishes wishes = read_plan_options(options == nullptr ? "" : options, context, run);
    const auto workers = context.make_workers(context.threads());
    auto object = std::make_shared<PlanObject>();
    object->plan.emplace(std::move(run), wishes, *workers);
    hand_out(plan, std::move(object));
  });
}

st_status st_plan_destroy(st_plan* plan) { return drop(plan); }

namespace {

template <class Answer>
st_status answer(st_plan* plan, const char** text, const char* name, const char* call, const Answer& make) {
  return guard(
      [&] {
        given(text, name);
        const auto object = find(plan);
        object->answer = make(*object->plan);
        *text = object->answer.c_str();
      },
      call);
}

}  // namespace

st_status st_plan_json(st_plan* plan, const char** json) {
  return answer(plan, json, "st_plan_json: json", "st_plan_json", [](const Blueprint& of) { return of.json(); });
}

st_status st_plan_text(st_plan* plan, const char** text) {
  return answer(plan, text, "st_plan_text: text", "st_plan_text", [](const Blueprint& of) { return of.text(); });
}

st_status st_plan_report(st_plan* plan, const char** html) {
  return answer(plan, html, "st_plan_report: html", "st_plan_report", [](const Blueprint& of) { return of.page(); });
}

st_status st_plan_trace(st_plan* plan, const char** json) {
  return answer(plan, json, "st_plan_trace: json", "st_plan_trace", [](const Blueprint& of) { return of.trace(); });
}

st_status st_plan_recipe(st_plan* plan, const char** json) {
  return answer(plan, json, "st_plan_recipe: json", "st_plan_recipe", [](const Blueprint& of) { return of.run().recipe.json(); });
}

namespace {

double median_seconds(const std::vector<StepReport>& steps) {
  std::vector<double> all;
  for (const StepReport& step : steps) all.push_back(step.milliseconds * 1e-3);
  if (all.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

/// A rank of a group has only its own plan, so the others are planned here; with a loss of the host the rank is alone.
Forecast forecast_of(const TrainerObject& t, const Machine& machine, const MeasuredStep& measured) {
  const Trainer& trainer = *t.trainer;
  const int threads = t.trainer->workers().threads();
  const Program& model = trainer.model().program();
  if (t.group == nullptr || trainer.recipe().ranks == 1 || !model.loss_sum)
    return forecast(trainer.plans(), trainer.recipe(), machine, threads, measured);
  PlannedRun run{.model = model, .recipe = trainer.recipe(), .machine = machine};
  run.recipe.threads = threads;
  run.late_parameters = trainer.model().context().options().late_parameters;
  return forecast(RunPlan(run), measured);
}

}  // namespace

st_status st_trainer_forecast(st_trainer* trainer, const char* machine, const char** json) {
  return guard([&] {
    given(json, "st_trainer_forecast: json");
    const auto t = find(trainer);
    const Context& context = t->trainer->model().context();
    const Recipe& recipe = t->trainer->recipe();
    const int threads = t->trainer->workers().threads();
    const Machine of = machine == nullptr ? machine_of(profile_of(context.backend(), threads), context.threads()) : parse_machine(machine);
    const char* version = "";
    st_version(&version);
    const std::string why = differs_from_here(of, context, version);
    check(why.empty(), "st_trainer_forecast: machine: its rates were measured ", why,
          "; measure again with `scaletrain bench --calibrate FILE`");
    const PipelineTimes stages = recipe.stages > 1 ? t->trainer->pipeline_times() : PipelineTimes();
    const MeasuredStep measured{median_seconds(t->history.steps()), t->trainer->timeline(), recipe.stages > 1 ? &stages : nullptr};
    t->answer = forecast_of(*t, of, measured).json(of, measured);
    *json = t->answer.c_str();
  });
}

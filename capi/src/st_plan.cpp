#include <scaletrain/plan.h>

#include "guard.h"
#include "model_object.h"
#include "plan_object.h"
#include "plan_options.h"
#include "recipe_object.h"

using namespace st;
using namespace st::capi;

st_status st_plan_create(st_model* model, st_recipe* recipe, const char* options, st_plan** plan) {
  return guard([&] {
    given(plan, "st_plan_create: plan");
    const auto of = peek(model);
    PlannedRun run{.model = of->model->program(), .recipe = find(recipe)->recipe, .machine = {}};
    require(static_cast<bool>(run.model.loss_sum), Code::unsupported,
            "st_plan_create: the model has no loss of its own; give its graph one (st_graph_loss), whose step can be planned");
    const BlueprintWishes wishes = read_plan_options(options == nullptr ? "" : options, of->model->context(), run);
    auto object = std::make_shared<PlanObject>();
    object->plan.emplace(std::move(run), wishes);
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

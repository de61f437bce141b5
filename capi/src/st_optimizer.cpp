#include "context_object.h"
#include "guard.h"
#include "optimizer_arguments.h"
#include "optimizer_objects.h"

using namespace st;
using namespace st::capi;

st_status st_optimizer_report_init(st_optimizer_report* report, size_t size) { return init(report, size, st_optimizer_report{}); }

st_status st_optimizer_create(st_context* context, const char* json, int64_t n, const st_named_view* parameters, st_optimizer** optimizer) {
  return guard([&] {
    given(optimizer, "st_optimizer_create: optimizer");
    auto shared = peek(context)->context;  // first, so that allocations use its memory
    const std::vector<std::string> names = names_of_parameters(n, parameters, "st_optimizer_create");
    const std::vector<HostView> views = views_of_parameters(names, parameters, "st_optimizer_create");
    auto object = std::make_shared<OptimizerObject>();
    object->optimizer = std::make_unique<HostOptimizer>(std::move(shared), json == nullptr ? "" : json, views);
    object->state.list(object->optimizer->state());
    hand_out(optimizer, std::move(object));
  });
}

st_status st_optimizer_destroy(st_optimizer* optimizer) { return drop(optimizer); }

st_status st_optimizer_step(st_optimizer* optimizer, int64_t n, const st_view* gradients, st_optimizer_report* report) {
  return guard([&] {
    const auto o = find(optimizer);
    if (report != nullptr) take(report, "st_optimizer_step: report");
    take_gradients(o->gradients, *o->optimizer, n, gradients, "st_optimizer_step");
    const st_optimizer_report ours = report_of(o->optimizer->step(o->gradients));
    if (report != nullptr) give(report, ours, "st_optimizer_step: report");
  });
}

st_status st_optimizer_step_scaled(st_optimizer* optimizer, st_loss_scaler* scaler, int64_t n, const st_view* gradients,
                                   st_optimizer_report* report) {
  return guard([&] {
    const auto o = find(optimizer);
    const auto s = find(scaler);
    if (report != nullptr) take(report, "st_optimizer_step_scaled: report");
    take_gradients(o->gradients, *o->optimizer, n, gradients, "st_optimizer_step_scaled");
    HostOptimizer::Report done;
    const auto step = [&](double scale) {
      done = o->optimizer->step(o->gradients, scale);
      return !done.skipped;
    };
    s->step->step_by(std::ref(step));  // by reference: std::function would allocate for the captures
    if (report != nullptr) give(report, report_of(done), "st_optimizer_step_scaled: report");
  });
}

st_status st_optimizer_keep_copies(st_optimizer* optimizer, int64_t n, const st_view* copies) {
  return guard([&] {
    const auto o = find(optimizer);
    o->optimizer->keep_copies(copies_of(*o->optimizer, n, copies, "st_optimizer_keep_copies"));
  });
}

st_status st_optimizer_set(st_optimizer* optimizer, const char* key, const char* json) {
  return guard([&] {
    const auto o = find(optimizer);
    o->optimizer->set(text_given(key, "st_optimizer_set: key"), text_given(json, "st_optimizer_set: json"));
  });
}

st_status st_optimizer_state_views(st_optimizer* optimizer, int64_t* n, const st_named_view** views) {
  return guard([&] {
    const auto o = find(optimizer);
    given(n, "st_optimizer_state_views: n") = std::ssize(o->state.views);
    given(views, "st_optimizer_state_views: views") = o->state.views.data();
  });
}

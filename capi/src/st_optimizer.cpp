#include "guard.h"
#include "objects.h"
#include "views.h"

using namespace st;
using namespace st::capi;

namespace {

/// Names first: views point at them.
std::vector<std::string> names_of(int64_t n, const st_named_view* parameters) {
  constexpr const char* kCall = "st_optimizer_create";
  check(n >= 1 && n <= kMaxGradients, kCall, ": n is ", n, "; allowed is 1 to ", kMaxGradients);
  given(parameters, "st_optimizer_create: parameters");
  std::vector<std::string> names;
  for (int64_t i = 0; i < n; ++i) names.push_back(parameters[i].name == nullptr ? text("param_", i) : parameters[i].name);
  return names;
}

void take_gradients(OptimizerObject& o, int64_t n, const st_view* gradients, const char* call) {
  check_gradient_count(n, gradients, call);
  const auto expected = static_cast<int64_t>(o.optimizer->size());
  check(n == expected, call, ": n is ", n, ", but there are ", expected, " parameters; give the gradient of each, in their order");
  o.gradients.resize(o.optimizer->size());
  for (size_t i = 0; i < o.gradients.size(); ++i)
    if (o.optimizer->is_trained(i)) o.gradients[i] = read_view(o.optimizer->gradient_name(i), &gradients[i], call);
}

/// The copies of each parameter; no more of them: none.
std::vector<HostView> copies_of(const HostOptimizer& optimizer, int64_t n, const st_view* copies) {
  constexpr const char* kCall = "st_optimizer_keep_copies";
  const auto expected = static_cast<int64_t>(optimizer.size());
  check(n == 0 || n == expected, kCall, ": n is ", n, ", but there are ", expected,
        " parameters; give the copy of each, in their order, or 0 for no more copies");
  std::vector<HostView> views(static_cast<size_t>(n));
  if (n > 0) given(copies, "st_optimizer_keep_copies: copies");
  for (size_t i = 0; i < views.size(); ++i)
    if (copies[i].data != nullptr) views[i] = written_view(optimizer.copy_name(i), &copies[i], kCall);
  return views;
}

st_optimizer_report of(const HostOptimizer::Report& report) {
  st_optimizer_report ours{};
  ours.skipped = report.skipped ? 1 : 0;
  ours.step = report.step;
  ours.lr = report.lr;
  ours.norm = report.norm;
  return ours;
}

void list_state(OptimizerObject& o) {
  const auto state = o.optimizer->state();
  for (const HostView& view : state) o.state_dims.emplace_back(view.shape.begin(), view.shape.end());
  for (size_t i = 0; i < state.size(); ++i)
    o.state.push_back(
        {state[i].name.data(),
         {static_cast<st_dtype>(state[i].dtype), state[i].shape.rank(), o.state_dims[i].data(), nullptr, state[i].data, state[i].bytes()}});
}

}  // namespace

st_status st_optimizer_report_init(st_optimizer_report* report, size_t size) { return init(report, size, st_optimizer_report{}); }

st_status st_optimizer_create(st_context* context, const char* json, int64_t n, const st_named_view* parameters, st_optimizer** optimizer) {
  return guard([&] {
    given(optimizer, "st_optimizer_create: optimizer");
    auto shared = peek(context)->context;  // first, so that its memory serves
    const std::vector<std::string> names = names_of(n, parameters);
    std::vector<HostView> views;
    for (size_t i = 0; i < names.size(); ++i) views.push_back(written_view(names[i], &parameters[i].view, "st_optimizer_create"));
    auto object = std::make_shared<OptimizerObject>();
    object->optimizer = std::make_unique<HostOptimizer>(std::move(shared), json == nullptr ? "" : json, views);
    list_state(*object);
    hand_out(optimizer, std::move(object));
  });
}

st_status st_optimizer_destroy(st_optimizer* optimizer) {
  return guard([&] { drop(optimizer); });
}

st_status st_optimizer_step(st_optimizer* optimizer, int64_t n, const st_view* gradients, st_optimizer_report* report) {
  return guard([&] {
    const auto o = find(optimizer);
    if (report != nullptr) take(report, "st_optimizer_step: report");
    take_gradients(*o, n, gradients, "st_optimizer_step");
    const st_optimizer_report ours = of(o->optimizer->step(o->gradients));
    if (report != nullptr) give(report, ours, "st_optimizer_step: report");
  });
}

st_status st_optimizer_step_scaled(st_optimizer* optimizer, st_loss_scaler* scaler, int64_t n, const st_view* gradients,
                                   st_optimizer_report* report) {
  return guard([&] {
    const auto o = find(optimizer);
    const auto s = find(scaler);
    if (report != nullptr) take(report, "st_optimizer_step_scaled: report");
    take_gradients(*o, n, gradients, "st_optimizer_step_scaled");
    HostOptimizer::Report done;
    const auto step = [&](double scale) {
      done = o->optimizer->step(o->gradients, scale);
      return !done.skipped;
    };
    s->step->step_by(std::ref(step));  // a reference: std::function would allocate for the captures
    if (report != nullptr) give(report, of(done), "st_optimizer_step_scaled: report");
  });
}

st_status st_optimizer_keep_copies(st_optimizer* optimizer, int64_t n, const st_view* copies) {
  return guard([&] {
    const auto o = find(optimizer);
    o->optimizer->keep_copies(copies_of(*o->optimizer, n, copies));
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
    given(n, "st_optimizer_state_views: n") = std::ssize(o->state);
    given(views, "st_optimizer_state_views: views") = o->state.data();
  });
}

#include "context_object.h"
#include "guard.h"
#include "optimizer_objects.h"

using namespace st;
using namespace st::capi;

namespace {

LossScale options_of(const st_loss_scaler_options& theirs) {
  return {.enabled = theirs.enabled != 0,
          .dynamic = theirs.dynamic != 0,
          .scale = theirs.initial_scale,
          .growth_factor = theirs.growth_factor,
          .backoff_factor = theirs.backoff_factor,
          .growth_interval = theirs.growth_interval,
          .hysteresis = theirs.hysteresis,
          .consecutive_hysteresis = theirs.consecutive_hysteresis != 0,
          .minimum = theirs.minimum_scale};
}

}  // namespace

st_status st_loss_scaler_options_init(st_loss_scaler_options* options, size_t size) {
  const LossScale standard;
  st_loss_scaler_options defaults{};
  defaults.enabled = defaults.dynamic = 1;
  defaults.initial_scale = standard.scale;
  defaults.growth_factor = standard.growth_factor;
  defaults.backoff_factor = standard.backoff_factor;
  defaults.growth_interval = standard.growth_interval;
  defaults.minimum_scale = standard.minimum;
  defaults.hysteresis = standard.hysteresis;
  return init(options, size, defaults);
}

st_status st_loss_scaler_create(st_context* context, const st_loss_scaler_options* options, st_loss_scaler** scaler) {
  return guard([&] {
    given(scaler, "st_loss_scaler_create: scaler");
    auto shared = peek(context)->context;  // first, so that allocations use its memory
    LossScale wish;
    int threads = shared->threads();
    if (options != nullptr) {
      const st_loss_scaler_options theirs = take(options, "st_loss_scaler_create: options");
      check_threads("st_loss_scaler_create", theirs.threads, "the context's");
      if (theirs.threads > 0) threads = theirs.threads;
      wish = options_of(theirs);
    }
    static_cast<void>(LossScaler(wish));  // throws before threads are started
    auto object = std::make_shared<LossScalerObject>();
    object->step = std::make_unique<ScaledStep>(wish, shared->make_workers(threads));
    object->context = std::move(shared);
    hand_out(scaler, std::move(object));
  });
}

st_status st_loss_scaler_destroy(st_loss_scaler* scaler) { return drop(scaler); }

st_status st_loss_scaler_scale(st_loss_scaler* scaler, double* scale) {
  return guard([&] {
    given(scale, "st_loss_scaler_scale: scale");
    *scale = find(scaler)->step->scale();
  });
}

st_status st_loss_scaler_unscale(st_loss_scaler* scaler, int64_t n, const st_view* gradients, int32_t* finite) {
  return guard([&] {
    given(finite, "st_loss_scaler_unscale: finite");
    const auto s = find(scaler);
    s->arrays.clear();
    for (const HostView& view : s->gradients.take(n, gradients, "st_loss_scaler_unscale"))
      s->arrays.push_back({.dtype = view.dtype, .shape = view.shape, .strides = view.strides, .data = view.data});
    *finite = s->step->unscale(s->arrays) ? 1 : 0;
  });
}

st_status st_loss_scaler_step(st_loss_scaler* scaler, int32_t* run) {
  return guard([&] {
    given(run, "st_loss_scaler_step: run");
    *run = find(scaler)->step->step() ? 1 : 0;
  });
}

st_status st_loss_scaler_update(st_loss_scaler* scaler, int32_t* skipped) {
  return guard([&] {
    const bool was_skipped = find(scaler)->step->update();
    if (skipped != nullptr) *skipped = was_skipped ? 1 : 0;
  });
}

st_status st_loss_scaler_state(st_loss_scaler* scaler, const char** json) {
  return guard([&] {
    given(json, "st_loss_scaler_state: json");
    const auto s = find(scaler);
    s->answer = s->step->state();
    *json = s->answer.c_str();
  });
}

st_status st_loss_scaler_restore(st_loss_scaler* scaler, const char* json) {
  return guard([&] { find(scaler)->step->restore(text_given(json, "st_loss_scaler_restore: json")); });
}

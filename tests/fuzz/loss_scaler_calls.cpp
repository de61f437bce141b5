// Loss scaling alone: options, and the calls of a step in any order.
#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {
namespace {

void make_scaler(World& world) {
  auto* options = world.bytes.rarely(2) ? FILLED(st_loss_scaler_options_init) : nullptr;
  if (options != nullptr && options->struct_size >= sizeof *options) {
    options->threads = world.bytes.rarely() ? -1 : world.bytes.next() % 3;
    if (world.bytes.rarely(4)) options->enabled = world.bytes.next() % 2;
    if (world.bytes.rarely(4)) options->dynamic = world.bytes.next() % 2;
    if (world.bytes.rarely(4)) options->initial_scale = static_cast<double>(world.number());
    if (world.bytes.rarely(8)) options->growth_factor = static_cast<double>(world.number());
    if (world.bytes.rarely(8)) options->backoff_factor = 1.0 / static_cast<double>(world.number());
    if (world.bytes.rarely(4)) options->growth_interval = world.number();
    if (world.bytes.rarely(4)) options->hysteresis = world.number();
    if (world.bytes.rarely(4)) options->consecutive_hysteresis = world.bytes.next() % 2;
    if (world.bytes.rarely(8)) options->minimum_scale = static_cast<double>(world.number());
  }
  MAKE(st_loss_scaler_create, loss_scalers, world.handle(world.contexts), options);
}

void unscale(World& world, st_loss_scaler* scaler) {
  st_view gradients[3];
  for (st_view& gradient : gradients) gradient = world.bytes.rarely(8) ? world.view() : world.view_of({3, 4});
  if (world.bytes.rarely()) gradients[2] = gradients[0];
  int32_t finite = 0;
  CALL(st_loss_scaler_unscale, scaler, world.bytes.rarely(16) ? world.number() % 4 : 3, gradients, &finite);
}

}  // namespace

void loss_scaler_use(World& world) {
  if (world.loss_scalers.live.size() > 3) return DESTROY(st_loss_scaler_destroy, loss_scalers);
  if (world.loss_scalers.live.empty() || world.bytes.rarely()) return make_scaler(world);
  st_loss_scaler* scaler = world.handle(world.loss_scalers);
  double scale = 0;
  int32_t flag = 0;
  const char* state = nullptr;
  const Calls calls = {
      [&] {
        if (CALL(st_loss_scaler_state, scaler, &state)) CALL(st_loss_scaler_restore, scaler, std::string(state).c_str());
      },
      [&] { CALL(st_loss_scaler_restore, scaler, world.bytes.rarely(2) ? world.name() : R"({"scale":2.0,"good_steps":0})"); },
      [&] { CALL(st_loss_scaler_step, scaler, &flag); },
      [&] { CALL(st_loss_scaler_update, scaler, &flag); },
      [&] {  // a whole step
        CALL(st_loss_scaler_scale, scaler, &scale);
        unscale(world, scaler);
        CALL(st_loss_scaler_step, scaler, &flag);
        CALL(st_loss_scaler_update, scaler, &flag);
      },
  };
  world.bytes.choose(8, calls);
}

}  // namespace st::fuzz

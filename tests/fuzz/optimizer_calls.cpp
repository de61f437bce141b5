// Optimizers alone and clipping: valid and invalid parameters and gradients, steps, and writes to the state.
#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {
namespace {

const char* optimizer_json(World& world) {
  static constexpr std::array kJson = {R"({"optimizer": "adamw", "clip": 1})",
                                       R"({"optimizer": "adam", "threads": 2})",
                                       R"({"optimizer": "sgd", "momentum": 0.9, "nesterov": true})",
                                       R"({"optimizer": "adafactor"})",
                                       R"({"optimizer": "muon", "clip_value": 0.5})",
                                       R"({"optimizer": "rmsprop", "momentum": 0.5, "centered": true})",
                                       R"({"optimizer": "lion", "groups": [{"pattern": "b", "frozen": true}]})",
                                       R"({"optimizer": "adagrad", "groups": [{"pattern": "*", "optimizer": "adamw-8bit"}]})"};
  return world.bytes.rarely() ? json(world) : world.bytes.pick(kJson);
}

st_view gradient(World& world, std::initializer_list<int64_t> shape) {
  st_view made = world.bytes.rarely(16) ? world.view() : world.view_of(shape);
  if (world.bytes.rarely(4) && made.rank > 0) made.dtype = ST_BF16;  // needs less memory than there is
  return made;
}

void make_optimizer(World& world) {
  st_named_view parameters[] = {{"a", world.view_of({3, 4})}, {"b", world.view_of({5})}};
  if (world.bytes.rarely()) parameters[1].name = nullptr;
  if (world.bytes.rarely()) parameters[1].view = world.view();
  if (world.bytes.rarely(16)) parameters[1] = parameters[0];
  const int64_t n = world.bytes.rarely(16) ? world.number() % 3 : 2;
  MAKE(st_optimizer_create, optimizers, world.handle(world.contexts), optimizer_json(world), n, parameters);
}

void step(World& world, st_optimizer* optimizer) {
  st_view gradients[] = {gradient(world, {3, 4}), gradient(world, {5})};
  if (world.bytes.rarely(16)) gradients[1] = gradients[0];
  auto* report = world.bytes.rarely(2) ? FILLED(st_optimizer_report_init) : nullptr;
  const int64_t n = world.bytes.rarely(16) ? world.number() % 3 : 2;
  if (world.bytes.rarely(2)) {
    CALL(st_optimizer_step_scaled, optimizer, world.handle(world.loss_scalers), n, gradients, report);
  } else {
    CALL(st_optimizer_step, optimizer, n, gradients, report);
  }
}

void keep_copies(World& world, st_optimizer* optimizer) {
  st_view copies[] = {world.bytes.rarely(16) ? world.view() : world.view_of({3, 4}), world.view_of({5})};
  for (st_view& copy : copies) {
    if (!world.bytes.rarely(16)) copy.dtype = world.bytes.rarely(2) ? ST_BF16 : ST_F16;  // needs less memory than there is
    if (world.bytes.rarely(4)) copy.data = nullptr;
  }
  if (world.bytes.rarely(16)) copies[1] = copies[0];
  const int64_t n = world.bytes.rarely(4) ? world.number() % 3 : 2;
  CALL(st_optimizer_keep_copies, optimizer, n, copies);
}

void clip(World& world) {
  const st_view gradients[] = {gradient(world, {3, 4}), gradient(world, {2000})};
  double norm = 0;
  CALL(st_clip_norm, world.handle(world.contexts), world.bytes.rarely(16) ? world.number() % 3 : 2, gradients,
       world.bytes.rarely(16) ? -1 : world.bytes.next() % 3, world.bytes.rarely() ? nullptr : &norm);
}

void write_state(World& world, st_optimizer* optimizer) {
  int64_t n = 0;
  const st_named_view* views = nullptr;
  if (CALL(st_optimizer_state_views, optimizer, &n, &views)) write_to(world, n, views);
}

}  // namespace

void optimizer_use(World& world) {
  if (world.optimizers.live.size() > 3) return DESTROY(st_optimizer_destroy, optimizers);
  if (world.optimizers.live.empty() || world.bytes.rarely()) return make_optimizer(world);
  st_optimizer* optimizer = world.handle(world.optimizers);
  const Calls calls = {
      [&] { CALL(st_optimizer_set, optimizer, world.bytes.rarely() ? key(world) : "lr", world.bytes.rarely(4) ? setting(world) : "0.01"); },
      [&] { write_state(world, optimizer); },
      [&] { clip(world); },
      [&] { keep_copies(world, optimizer); },
      [&] { step(world, optimizer); },
  };
  world.bytes.choose(7, calls);
}

}  // namespace st::fuzz

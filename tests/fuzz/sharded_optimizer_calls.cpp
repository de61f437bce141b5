// Sharded optimizers on groups driven by this one thread: of one rank, and of two whose other rank does not join.
#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {
namespace {

void make(World& world) {
  auto* options = world.bytes.rarely(2) ? FILLED(st_sharded_optimizer_options_init) : nullptr;
  if (options != nullptr && options->struct_size >= sizeof *options) {
    const auto drawn = world.bytes.next();
    options->stage = 1 + drawn % 2;
    if (world.bytes.rarely(16)) options->op = world.bytes.next() % 4;
    options->shard_masters = drawn / 2 % 2;
    if (world.bytes.rarely(4)) options->bucket_bytes = world.number();
  }
  constexpr std::array kSettings = {"{}", R"({"optimizer":"lion","threads":1})", R"({"optimizer":"adafactor","clip":1})",
                                    R"({"groups":3})"};
  const st_named_view parameters[] = {{world.name(), world.bytes.rarely(8) ? world.view() : world.view_of({3, 4})},
                                      {nullptr, world.view_of({2})}};
  MAKE(st_sharded_optimizer_create, sharded_optimizers, world.handle(world.communicators), world.bytes.pick(kSettings),
       1 + world.bytes.next() % 2, parameters, options);
}

void step(World& world, st_sharded_optimizer* optimizer) {
  const st_view gradients[] = {world.bytes.rarely(8) ? world.view() : world.view_of({3, 4}), world.view_of({2})};
  const int64_t n = world.bytes.next() % 4 == 0 ? 0 : 1 + world.bytes.next() % 2;
  auto* report = world.bytes.rarely(2) ? FILLED(st_optimizer_report_init) : nullptr;
  if (world.bytes.rarely(3))
    CALL(st_sharded_optimizer_step_scaled, optimizer, world.handle(world.loss_scalers), n, gradients, report);
  else
    CALL(st_sharded_optimizer_step, optimizer, n, gradients, report);
}

void gather_and_load(World& world, st_sharded_optimizer* optimizer) {
  int64_t n = 0;
  const st_named_view* views = nullptr;
  if (!CALL(st_sharded_optimizer_gather_state, optimizer, static_cast<int32_t>(world.bytes.next() % 3) - 1, &n, &views)) return;
  write_to(world, n, views);
  if (world.bytes.rarely(8)) {
    const std::vector<st_named_view> others = world.views(world.name());
    CALL(st_sharded_optimizer_load_state, optimizer, static_cast<int64_t>(others.size()), others.data());
  } else {
    CALL(st_sharded_optimizer_load_state, optimizer, world.bytes.rarely(4) ? n / 2 : n, views);
  }
}

}  // namespace

void sharded_optimizer_use(World& world) {
  if (world.communicators.live.empty()) return communicator_use(world);
  if (world.sharded_optimizers.live.size() < 2) make(world);
  st_sharded_optimizer* optimizer = world.handle(world.sharded_optimizers);
  const st_view gradient = world.bytes.rarely(8) ? world.view() : world.view_of({3, 4});
  switch (world.bytes.next() % 8) {
    case 0:
      CALL(st_sharded_optimizer_set, optimizer, world.bytes.rarely() ? key(world) : "lr", world.bytes.rarely(4) ? setting(world) : "0.01");
      return;
    case 1:
      CALL(st_sharded_optimizer_keep_copies, optimizer, world.bytes.next() % 2, &gradient);
      return;
    case 2:
      return gather_and_load(world, optimizer);
    case 3:
    case 4:
      CALL(st_sharded_optimizer_gradient_ready, optimizer, world.bytes.next() % 3, &gradient);
      return;
    default:
      return step(world, optimizer);
  }
}

}  // namespace st::fuzz

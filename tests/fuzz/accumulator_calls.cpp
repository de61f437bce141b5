// Gradient accumulation alone: valid and invalid arrays, weights, and the calls of a step in any order.
#include <array>
#include <limits>

#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {
namespace {

void make_accumulator(World& world) {
  st_view gradients[] = {world.view_of({3, 4}), world.view_of({5})};
  if (world.bytes.rarely(4)) gradients[0].dtype = ST_F16;  // needs less memory than there is
  if (world.bytes.rarely()) gradients[1] = world.view();
  if (world.bytes.rarely(16)) gradients[1] = gradients[0];
  const int64_t steps = world.bytes.rarely(8) ? world.number() : 1 + world.bytes.next() % 4;
  MAKE(st_accumulator_create, accumulators, world.handle(world.contexts), steps, world.bytes.rarely(16) ? world.number() % 3 : 2,
       gradients);
}

double weight(World& world) {
  static constexpr std::array kBad = {-1.0, 1e300, 1e-300, std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};
  return world.bytes.rarely(8) ? world.bytes.pick(kBad) : world.bytes.next() % 4;
}

void write_state(World& world, st_accumulator* accumulator) {
  int64_t n = 0;
  const st_named_view* views = nullptr;
  if (CALL(st_accumulator_state_views, accumulator, &n, &views)) write_to(world, n, views);
}

}  // namespace

void accumulator_use(World& world) {
  if (world.accumulators.live.size() > 3) return DESTROY(st_accumulator_destroy, accumulators);
  if (world.accumulators.live.empty() || world.bytes.rarely()) return make_accumulator(world);
  st_accumulator* accumulator = world.handle(world.accumulators);
  int32_t yes = 0;
  double all = 0;
  const Calls calls = {
      [&] { CALL(st_accumulator_set_steps, accumulator, world.bytes.rarely(4) ? world.number() : 1 + world.bytes.next() % 4); },
      [&] { CALL(st_accumulator_reset, accumulator); },
      [&] { CALL(st_accumulator_weight, accumulator, &all); },
      [&] { write_state(world, accumulator); },
      [&] {
        CALL(st_accumulator_add, accumulator, weight(world));
        CALL(st_accumulator_should_step, accumulator, &yes);
      },
  };
  world.bytes.choose(8, calls);
}

}  // namespace st::fuzz

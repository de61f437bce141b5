// Samplers: row orders for arbitrary arguments.
#include <array>
#include <string>

#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {

void sampler_use(World& world) {
  if (world.samplers.live.size() < 3) {
    st_distributed_sampler_options options;
    CALL(st_distributed_sampler_options_init, &options, sizeof options);
    options.last = world.bytes.next() % 4;
    options.shuffle = world.bytes.next() % 2;
    options.size = 1 + world.bytes.next() % 5;
    options.rank = world.bytes.next() % 5;
    options.seed = world.number();
    MAKE(st_distributed_sampler_create, samplers, world.number(), world.bytes.rarely() ? nullptr : &options);
  }
  st_distributed_sampler* sampler = world.handle(world.samplers);
  std::array<int64_t, 8> rows{};
  int64_t own = 0, all = 0;
  const Calls calls = {
      [&] { CALL(st_distributed_sampler_set_epoch, sampler, world.number()); },
      [&] { CALL(st_distributed_sampler_set_cursor, sampler, world.number()); },
      [&] { CALL(st_distributed_sampler_cursor, sampler, &own); },
      [&] {
        if (CALL(st_distributed_sampler_next, sampler, world.bytes.next() % 9, rows.data(), &own, &all) &&
            (own < 0 || own > 8 || all < own))
          finding("st_distributed_sampler_next", std::to_string(own) + " rows of " + std::to_string(all));
      },
  };
  world.bytes.choose(4, calls);
}

}  // namespace st::fuzz

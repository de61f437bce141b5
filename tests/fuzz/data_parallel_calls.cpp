// Data parallel on ranks driven by this one thread: groups of one, and of two whose other end does not join.
#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {

void data_parallel_use(World& world) {
  if (world.communicators.live.empty()) return communicator_use(world);
  if (world.data_parallels.live.size() < 2) {
    st_data_parallel_options options;
    CALL(st_data_parallel_options_init, &options, sizeof options);
    options.op = world.bytes.next() % 4;
    if (world.bytes.rarely(2)) options.bucket_bytes = world.number();
    const st_named_view gradients[] = {{world.name(), world.bytes.rarely(8) ? world.view() : world.view_of({4})},
                                       {nullptr, world.view_of({2})}};
    MAKE(st_data_parallel_create, data_parallels, world.handle(world.communicators), 1 + world.bytes.next() % 2, gradients,
         world.bytes.rarely() ? nullptr : &options);
  }
  st_data_parallel* parallel = world.handle(world.data_parallels);
  const Calls calls = {
      [&] { CALL(st_data_parallel_synchronize, parallel); },
      [&] { CALL(st_data_parallel_no_sync, parallel, world.bytes.next() % 2); },
      [&] { CALL(st_data_parallel_gradient_ready, parallel, world.bytes.next() % 3); },
  };
  world.bytes.choose(4, calls);
}

}  // namespace st::fuzz

// Contexts, with or without services of the host.
#include "api_calls.h"

#include <limits>

#include "call_arguments.h"
#include "host_callbacks.h"

namespace st::fuzz {

void context_create(World& world) {
  if (world.contexts.live.size() > 3) return;
  auto* options = FILLED(st_context_options_init);
  if (options != nullptr) {
    static constexpr std::array<int32_t, 6> kThreads = {1, 2, -1, 5000, 1, 1};
    static const std::array<const char*, 6> kDevices = {"cpu", "reference", "cuda", "", "cpu", "cpu"};
    options->threads = world.bytes.pick(kThreads);
    options->device = world.bytes.pick(kDevices);
    // Never 0, the machine's memory: filling gigabytes is correct but too slow, and so are a hundred megabytes under a sanitizer.
    static constexpr std::array<int64_t, 8> kLimits = {1 << 24, 1 << 24, 1 << 24, 1 << 20,
                                                       1 << 12, 1,       -1,      std::numeric_limits<int64_t>::min()};
    options->memory_limit = world.bytes.pick(kLimits);
    static const std::array<const char*, 4> kCaches = {"", "", "/", "/proc/self/mem"};  // no file of the user's
    options->tuning_cache = world.bytes.pick(kCaches);
    options->late_parameters = world.bytes.rarely(4) ? 1 : 0;
    if (world.bytes.rarely(2)) options->log = log_record;
    if (world.bytes.rarely(2)) options->parallel = parallel;
    if (world.bytes.rarely(2)) options->alloc = allocate;
    if (options->alloc != nullptr || world.bytes.rarely(16)) options->free = release_memory;
  }
  MAKE(st_context_create, contexts, options);
  if (options == nullptr && world.contexts.made != nullptr)  // would have no limit
    world.destroy("st_context_destroy", world.contexts, st_context_destroy, world.contexts.made);
}

void context_use(World& world) {
  st_context* context = world.handle(world.contexts);
  const char* text = nullptr;  // of a calibration that is refused: others take too long
  const Calls calls = {
      [&] { CALL(st_context_cancel, context); },
      [&] { CALL(st_context_trim, context); },
      [&] { CALL(st_context_memory, context, FILLED(st_memory_stats_init)); },
      [&] {
        CALL(st_context_reset_peak, context);
        int64_t stream = 0;
        if (CALL(st_context_stream, context, &stream)) CALL(st_context_use_stream, context, stream == 1 ? -1 : 1);  // the cpu has none
      },
      [&] { elsewhere().alloc_failures = world.bytes.next(); },
      [&] { context_create(world); },
      [&] { CALL(st_machine_calibrate, context, "{\"seconds\":-1}", &text); },
  };
  world.bytes.choose(7, calls);
}

}  // namespace st::fuzz

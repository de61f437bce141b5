// Schedules.
#include <array>

#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {
namespace {

/// Valid and invalid keys, and values of all sizes.
const char* schedule_json(World& world) {
  static const std::array<const char*, 12> kTexts = {
      R"({"schedule": "cosine", "warmup": 2, "lr_steps": 9, "lr_cycles": 2, "lr_cycle_growth": 3})",
      R"({"schedule": "one_cycle", "warmup": 0, "lr_steps": 1})",
      R"({"schedule": "wsd", "warmup": 1, "lr_steps": 9, "lr_decay_steps": 8, "lr_decay": "1-sqrt"})",
      R"({"schedule": "table", "lr_table": "0:1e-3 100:5e-4, 9223372036854775807:0"})",
      R"({"schedule": "polynomial", "warmup": 0, "lr_steps": 9223372036854775807, "lr_power": 1e300})",
      R"({"schedule": "inverse_sqrt", "warmup": 9223372036854775807, "lr": 1e308})",
      R"({"schedule": "linear"})",
      R"({"schedule": "cosine", "lr_steps": 9223372036854775807, "lr_cycles": 1000000, "lr_cycle_growth": 1000})",
      R"({"schedule": "one_cycle", "lr": 1e308, "lr_steps": 99, "lr_div_factor": 1e-300})",
      R"({"schedule": "table", "lr_table": "0:1 0:1"})",
      R"({"lr_step": 3})",
      nullptr};
  return world.bytes.rarely(4) ? json(world) : world.bytes.pick(kTexts);
}

}  // namespace

void schedule_use(World& world) {
  if (world.schedules.live.size() < 4) MAKE(st_schedule_create, schedules, schedule_json(world));
  const int64_t step = world.number();
  double lr = -1;
  const bool given = !world.bytes.rarely(16);
  if (CALL(st_schedule_at, world.handle(world.schedules), step, given ? &lr : nullptr) && !(lr >= 0))
    finding("st_schedule_at", std::to_string(lr) + " at step " + std::to_string(step));
}

}  // namespace st::fuzz

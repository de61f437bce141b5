// Functions without a handle: versions, features, counts, the last error.
#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {

void library_use(World& world) {
  const char* text = nullptr;
  int64_t count = 0;
  const Calls calls = {
      [&] { CALL(st_live_handles, world.bytes.rarely(2) ? "trainer" : world.name(), &count); },
      [&] {
        if (world.bytes.rarely(2)) {
          CALL(st_require, ST_VERSION_MAJOR, ST_VERSION_MINOR);
        } else {
          CALL(st_require, static_cast<int32_t>(world.number()), 1);
        }
      },
      [&] { CALL(st_version, world.bytes.rarely() ? nullptr : &text); },
      [&] {
        // It creates a context of each device, whose threads start slowly under a sanitizer.
        if (world.bytes.rarely(16)) CALL(st_features, world.bytes.rarely() ? nullptr : &text);
      },
      [&] { CALL(st_memory_role_name, static_cast<int32_t>(world.number()), world.bytes.rarely() ? nullptr : &text); },
      [&] {
        auto* info = FILLED(st_error_info_init);
        const st_status status = st_last_error_info(info);  // of the call before, if this one succeeds
        if (world.ok("st_last_error_info", status) && (info->status < ST_OK || info->status > ST_INTERNAL))
          finding("st_last_error_info", "no status");
      },
      [&] { CALL(st_callback_error, world.bytes.rarely() ? nullptr : world.name()); },
  };
  world.bytes.choose(7, calls);
}

}  // namespace st::fuzz

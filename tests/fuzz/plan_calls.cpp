// Plans of the models here, on machines that are not there.
#include <array>

#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {
namespace {

/// Texts whose plans take long are rare: a search or a list of fixes makes many.
const char* plan_json(World& world) {
  static constexpr std::array kLong = {
      R"({"machine": "v100-32g", "auto": true, "device_memory": 1})",
      R"({"machine": "h100-sxm", "simulate": true, "fixes": true, "scaling": 64, "troubles": [{"rank": 0, "computing": 1e308}]})",
  };
  static const std::array<const char*, 14> kTexts = {
      R"({"machine": "a100-80g"})",
      R"({"machine": "h200", "link": "10g", "ranks_per_node": 1, "failures": {"hours_between": 0, "save_seconds": 1e308}})",
      R"({"machine": "h200", "failures": {"lost_at": [0, 1e12, 0], "restart_seconds": 0, "steps": 9007199254740992, "seed": -1}})",
      R"({"machine": "a100-40g", "simulate": true, "troubles": [{"rank": 0, "exchange": 0}, {"rank": 0}], "rank": 0})",
      R"({"machine": "a100-80g", "processes": false, "late_parameters": true, "device_memory": 9223372036854775807})",
      R"({"machine": "a100-80g", "rank": -1})",
      R"({"machine": "a100-90g"})",
      R"({"machine": {}})",
      R"({"machine": {"version": 1e300, "rates": []}})",
      R"({"machine": "h200", "troubles": [3]})",
      R"({"machine": "h200", "ranks_per_node": 2147483648, "link": ""})",
      R"({"machin": "h200"})",
      R"([])",
      nullptr};
  if (world.bytes.rarely(32)) return world.bytes.pick(kLong);
  return world.bytes.rarely(4) ? json(world) : world.bytes.pick(kTexts);
}

}  // namespace

void plan_use(World& world) {
  if (world.plans.live.empty()) MAKE(st_plan_create, plans, world.handle(world.models), world.handle(world.recipes), plan_json(world));
  st_plan* plan = world.handle(world.plans);
  const char* text = nullptr;
  const char** const to = world.bytes.rarely(16) ? nullptr : &text;
  const Calls calls = {
      [&] { CALL(st_plan_json, plan, to); },   [&] { CALL(st_plan_text, plan, to); },  [&] { CALL(st_plan_recipe, plan, to); },
      [&] { CALL(st_plan_report, plan, to); }, [&] { CALL(st_plan_trace, plan, to); },
  };
  world.bytes.choose(5, calls);
}

}  // namespace st::fuzz

#include "plan_options.h"

#include <algorithm>
#include <cmath>

#include "backend/needs.h"
#include "base/json.h"
#include "base/library_version.h"
#include "models/json_options.h"
#include "planner/calibration.h"

namespace st::capi {
namespace {

constexpr const char* kCall = "st_plan_create: options";

double number_in(const Json& value, std::string_view what, double least) {
  check(value.is_number() && std::isfinite(value.number()) && value.number() >= least, kCall, ": ", what, " must be a number of at least ",
        least, ", got ", value.dump());
  return value.number();
}

Trouble trouble_in(const Json& value, std::string_view name, Trouble::Kind kind, int32_t rank) {
  return {kind, rank, number_in(value, text("troubles: ", name), 0)};
}

std::vector<Trouble> troubles_in(const Json& list, int64_t ranks) {
  check(list.is(Json::Kind::list), kCall, ": troubles must be a list, got ", list.dump());
  std::vector<Trouble> all;
  for (const Json& of : list.list()) {
    check(of.is(Json::Kind::object), kCall, ": a trouble must be an object such as {\"rank\": 3, \"computing\": 1.5}, got ", of.dump());
    const Json* const rank = of.find("rank");
    const int64_t number = rank == nullptr ? -1 : rank->as_whole().value_or(-1);
    check(number >= 0 && number < ranks, kCall, ": a trouble's rank must be 0 to ", ranks - 1, ", got ", of.dump());
    for (const auto& [key, value] : of.members()) {
      if (key == "rank") continue;
      check(key == "computing" || key == "exchange", kCall, ": a trouble has rank, computing and exchange, got ", key);
      all.push_back(
          trouble_in(value, key, key == "computing" ? Trouble::Kind::straggler : Trouble::Kind::slow_link, static_cast<int32_t>(number)));
    }
  }
  return all;
}

constexpr double kMostSeconds = 1e12;

/// Seconds of the run, rising.
std::vector<double> lost_at(const Json& list) {
  check(list.is(Json::Kind::list), kCall, ": failures: lost_at must be a list of seconds, got ", list.dump());
  std::vector<double> all;
  for (const Json& of : list.list()) all.push_back(number_in(of, "failures: lost_at", 0));
  std::ranges::sort(all);
  check(all.empty() || all.back() <= kMostSeconds, kCall, ": failures: lost_at must be 0 to 1e12 seconds, got ", list.dump());
  return all;
}

Failures failures_in(const Json& value) {
  check(value.is(Json::Kind::object), kCall, ": failures must be an object such as {\"hours_between\": 2000}, got ", value.dump());
  Failures failures;
  const std::string what = text(kCall, ": failures");
  const std::vector<Option> options = {{"hours_between", &failures.hours_between},
                                       {"restart_seconds", &failures.restart_seconds},
                                       {"save_seconds", &failures.save_seconds},
                                       {"steps_between_saves", &failures.steps_between_saves},
                                       {"steps", &failures.steps},
                                       {"seed", &failures.seed}};
  std::vector<std::string> known = {"lost_at"};
  for (const Option& option : options) known.push_back(option.name);
  for (const auto& [key, given] : value.members()) {
    check_word(what, "option", key, known);
    if (key == "lost_at")
      failures.lost_at = lost_at(given);
    else
      read_option(what, key, given, options);
  }
  for (const double number : {failures.hours_between, failures.restart_seconds, failures.save_seconds})
    check(number >= 0 && number <= kMostSeconds, what, " must be numbers of 0 to 1e12, got ", value.dump());
  for (const int64_t number : {failures.steps_between_saves, failures.steps})
    check(number >= 0 && number <= int64_t{1} << 53, what, ": steps must be 0 to 2^53, got ", value.dump());
  return failures;
}

/// This machine. A device's memory is what the context can have of it, so that nothing more is reserved.
Machine machine_here(const Context& context) {
  Machine machine = machine_of(profile_of(context.backend(), context.threads()), context.threads());
  if (!context.backend().is_host_memory()) machine.device_memory = context.available_memory() + context.backend().allocated_bytes();
  return machine;
}

Machine machine_in(const Json* value, const Context& context) {
  if (value == nullptr) return machine_here(context);
  if (value->is(Json::Kind::text)) return machine_named(value->text());
  check(value->is(Json::Kind::object), kCall, ": machine must be a name or an object that st_machine_calibrate wrote, got ", value->dump());
  Machine machine = parse_machine(value->dump());
  // Another version's kernels may take other times. Another processor is usual: plans are for elsewhere.
  if (const std::string version = differs_by_version(machine, library_version()); !version.empty())
    machine.source += text("; measured ", version, ", so measure again with `scaletrain bench --calibrate FILE`");
  return machine;
}

}  // namespace

BlueprintWishes read_plan_options(std::string_view json, const Context& context, PlannedRun& run) {
  const Json whole = parse_settings(json.empty() ? "{}" : json, kCall);
  check(whole.is(Json::Kind::object), kCall, " must be a JSON object, got ", whole.dump());
  BlueprintWishes wishes;
  run.machine = machine_in(whole.find("machine"), context);
  bool processes = run.machine.profile.device == "cuda", fixes = false;
  int64_t rank = 0, memory = 0, on_node = 0;
  std::string link;
  run.late_parameters = context.options().late_parameters;
  const std::vector<Option> options = {{"rank", &rank},
                                       {"device_memory", &memory},
                                       {"ranks_per_node", &on_node},
                                       {"link", &link},
                                       {"processes", &processes},
                                       {"late_parameters", &run.late_parameters},
                                       {"auto", &wishes.searches},
                                       {"simulate", &wishes.simulates},
                                       {"scaling", &wishes.scales_to},
                                       {"fixes", &fixes}};
  std::vector<std::string> known = {"machine", "troubles", "failures"};
  for (const Option& option : options) known.push_back(option.name);
  for (const auto& [key, value] : whole.members()) {
    check_word(kCall, "option", key, known);
    if (key == "troubles") {
      wishes.troubles = troubles_in(value, run.recipe.ranks);
    } else if (key == "failures") {
      wishes.failures = failures_in(value);
    } else if (key != "machine") {
      read_option(kCall, key, value, options);
    }
  }
  check(whole.find("device_memory") == nullptr || memory >= 1, kCall, ": device_memory must be bytes, 1 or more, got ", memory);
  check(whole.find("ranks_per_node") == nullptr || (on_node >= 1 && on_node < (1 << 20)), kCall,
        ": ranks_per_node must be 1 to 1048575, got ", on_node);
  check(rank >= 0 && rank < run.recipe.ranks, kCall, ": rank is ", rank, "; a run of ", run.recipe.ranks, " ranks has ranks 0 to ",
        run.recipe.ranks - 1);
  check(wishes.scales_to >= 0 && wishes.scales_to <= 1'000'000, kCall, ": scaling must be 0 to 1000000, got ", wishes.scales_to);
  if (memory > 0) run.machine.device_memory = memory;
  if (on_node > 0) run.machine.ranks_per_node = static_cast<int32_t>(on_node);
  if (!link.empty()) {
    run.machine.between_nodes = link_named(link);
    run.machine.source += text("; the link between nodes replaced by ", link);
  }
  if (whole.find("fixes") != nullptr) wishes.advises = fixes;
  run.by_threads = !processes;
  wishes.rank = static_cast<int32_t>(rank);
  return wishes;
}

}  // namespace st::capi

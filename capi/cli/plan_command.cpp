// scaletrain plan: what each rank of a run would hold, send and wait for, before anything runs.
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "machine_choice.h"
#include "model_choice.h"
#include "new_file.h"
#include "options.h"

namespace cli {
namespace {

constexpr const char* kMachines = "a100-40g, a100-80g, a800-80g, h100-sxm, h200, v100-16g or v100-32g";

struct PlanChoice {
  ModelOptions sizes;
  RecipeOptions recipe;
  std::string world, rank = "0", machine, memory, link, per_node, report, trace, slow, failures, lost_at, run_steps;
  bool searches = false, simulates = false, fixes = false, json = false;
};

void add_options(CLI::App& app, PlanChoice& o) {
  const auto add = [&app](const char* group, const char* name, std::string& value, const std::string& help) {
    add_filled(app, name, value, help + (value.empty() ? "" : " [" + value + "]"))->group(group);
  };
  o.sizes.add(app);
  o.recipe.add(app);
  add("Plan", "--world", o.world, "ranks, each a process; default: --ranks, threads of one process");
  add("Plan", "--rank", o.rank, "the rank to plan");
  add("Plan", "--machine", o.machine,
      kMachines + std::string(", by data sheet, or a file of `scaletrain bench --calibrate`; default: this machine's processor"));
  add("Plan", "--device-memory", o.memory,
      "of a device, with its unit: 80G (10^9 bytes), 79.1GiB; a plan that does not fit is printed and ends with status 2; default: the "
      "machine's, and status 0");
  add("Plan", "--ranks-per-node", o.per_node, "devices of a node; default: the machine's");
  add("Plan", "--link", o.link, "between nodes: 10g, 25g, 100g, 400g (Gbit/s a device) or nvlink; default: the machine's");
  add("Plan", "--report", o.report, "file for an HTML page: memory over a step, the stages' timeline, efficiency by number of ranks");
  add("Plan", "--trace", o.trace, "file for the simulated timeline of all ranks, for chrome://tracing and Perfetto");
  add("Plan", "--slow", o.slow,
      "for --simulate: RANK:COMPUTING[:EXCHANGE],.., factors on the times of a rank: 3:1.5 is a straggler, 3:1:4 has a slow link");
  add("Plan", "--failures", o.failures,
      "HOURS[:RESTART[:SAVE[:EVERY[:SEED]]]]: simulates a run whose nodes are lost once in so many hours on average; seconds until ranks "
      "compute again [300] and that a checkpoint blocks the step [0], steps between checkpoints [the number that loses least]: what share "
      "of the time makes progress that lasts");
  add("Plan", "--lost-at", o.lost_at, "SECOND,..: when nodes are lost in the run, besides those of --failures");
  add("Plan", "--run-steps", o.run_steps, "steps of that run; default: until about 2,000 nodes are lost");
  app.add_flag("--auto", o.searches, "search batch, recompute, zero, offload, stages, schedule and tensor for the fastest that fits")
      ->group("Plan");
  app.add_flag("--simulate", o.simulates, "simulate the step of all ranks")->group("Plan");
  app.add_flag("--fixes", o.fixes, "plan changes of the recipe and list their prices, also if the plan fits")->group("Plan");
  app.add_flag("--json", o.json, "one JSON object")->group("Plan");
}

/// "80G", "79.1 GiB".
int64_t bytes_of(const std::string& option, const std::string& value) {
  size_t end = 0;
  while (end < value.size() && (std::isdigit(static_cast<unsigned char>(value[end])) != 0 || value[end] == '.')) ++end;
  const size_t word = value.find_first_not_of(' ', end);
  const std::string unit = word == std::string::npos ? "" : value.substr(word);
  constexpr std::array<std::pair<const char*, double>, 13> kUnits = {{{"B", 1},
                                                                      {"M", 1e6},
                                                                      {"MB", 1e6},
                                                                      {"MiB", 0x1p20},
                                                                      {"Mi", 0x1p20},
                                                                      {"G", 1e9},
                                                                      {"GB", 1e9},
                                                                      {"GiB", 0x1p30},
                                                                      {"Gi", 0x1p30},
                                                                      {"T", 1e12},
                                                                      {"TB", 1e12},
                                                                      {"TiB", 0x1p40},
                                                                      {"Ti", 0x1p40}}};
  if (end == 0) refuse(option, " is ", value, "; give a number of bytes above 0, such as 80G");
  if (unit.empty())
    refuse(option, " is ", value, " without a unit; give ", value, "G (10^9 bytes), ", value, "GiB (2^30 bytes) or ", value, "M");
  for (const auto& [name, factor] : kUnits)
    if (unit == name) {
      const double bytes = real_number(option, value.substr(0, end)) * factor;
      if (bytes < 1 || bytes > 0x1p62) refuse(option, " is ", value, "; give a number of bytes above 0, such as 80G");
      return static_cast<int64_t>(bytes);
    }
  refuse(option, " is ", value, ": ", unit, " is no unit; use G, GiB, M, MiB, T or TiB");
}

int64_t one_or_more(const std::string& option, const std::string& value) {
  const int64_t number = whole_number(option, value);
  if (number < 1) refuse(option, " is ", number, "; give at least 1");
  return number;
}

std::vector<std::string> split(const std::string& value, char at) {
  std::vector<std::string> words = {""};
  for (const char c : value) {
    if (c == at)
      words.emplace_back();
    else
      words.back().push_back(c);
  }
  return words;
}

/// "3:1.5,7:1:4".
Json troubles_of(const std::string& value) {
  Json all = Json::array();
  for (const std::string& of : split(value, ',')) {
    const std::vector<std::string> words = split(of, ':');
    if (words.size() < 2 || words.size() > 3)
      refuse("--slow is ", value, "; give RANK:COMPUTING or RANK:COMPUTING:EXCHANGE, such as 3:1.5");
    Json trouble = {{"rank", whole_number("--slow", words[0])}, {"computing", real_number("--slow", words[1])}};
    if (words.size() == 3) trouble["exchange"] = real_number("--slow", words[2]);
    all.push_back(std::move(trouble));
  }
  return all;
}

/// "2000:300:5:100:1".
Json failures_of(const PlanChoice& o) {
  Json failures = Json::object();
  if (!o.failures.empty()) {
    const std::vector<std::string> words = split(o.failures, ':');
    constexpr std::array<const char*, 5> kKeys = {"hours_between", "restart_seconds", "save_seconds", "steps_between_saves", "seed"};
    if (words.size() > kKeys.size())
      refuse("--failures is ", o.failures, "; give HOURS, HOURS:RESTART, .. or HOURS:RESTART:SAVE:EVERY:SEED, such as 2000:300:5");
    for (size_t i = 0; i < words.size(); ++i)
      failures[kKeys[i]] = i < 3 ? Json(real_number("--failures", words[i])) : Json(whole_number("--failures", words[i]));
  }
  if (!o.lost_at.empty())
    for (const std::string& second : split(o.lost_at, ',')) failures["lost_at"].push_back(real_number("--lost-at", second));
  if (!o.run_steps.empty()) failures["steps"] = one_or_more("--run-steps", o.run_steps);
  if (o.failures.empty() && o.lost_at.empty() && !o.run_steps.empty())
    refuse("--run-steps is the length of a run with lost nodes; give --failures or --lost-at too");
  return failures;
}

/// Refuses, with status 2, a plan that does not fit into the memory that was given.
void require_fit(const Json& plan, const std::string& memory) {
  if (plan["fits"].get<bool>()) return;
  int64_t most = plan["memory"]["device_total"].get<int64_t>(), rank = plan["rank"].get<int64_t>();
  for (const Json& stage : plan["stages"])
    if (const auto total = stage["device_total"].get<int64_t>(); total > most) {
      most = total;
      rank = stage["rank"].get<int64_t>();
    }
  refuse("plan: rank ", rank, " does not fit into --device-memory ", memory, ": it needs ", most, " bytes, ",
         most - plan["device_memory"].get<int64_t>(), " too many; stdout has the plan, and changes of it with their prices");
}

/// Without a machine the plan is one for this machine's processor.
void require_machine(const Recipe& recipe, const PlanChoice& o) {
  const std::string device = recipe_text(recipe, "device"), name = device.substr(0, device.find(':'));
  if (o.machine.empty() && name != "auto" && name != "cpu" && name != "reference")
    refuse("plan: --device is ", device,
           ", but a plan for a device with memory of its own is made by its data sheet: leave --device out, or give --machine ", kMachines);
}

/// Before anything is planned.
void check_parent_of(const std::string& option, const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) refuse(option, ": cannot write ", path, ": no such folder");
}

void write_file(const std::string& path, std::string_view content) {
  NewFile file(path);
  file.add(content);
  file.finish();
}

int run(const PlanChoice& o) {
  check_parent_of("--report", o.report);
  check_parent_of("--trace", o.trace);
  const Recipe recipe = o.recipe.recipe(1);
  require_machine(recipe, o);
  const bool simulates = o.simulates || !o.report.empty() || !o.trace.empty() || !o.slow.empty();
  Json options = {{"rank", whole_number("--rank", o.rank)}, {"auto", o.searches}, {"simulate", simulates}};
  if (!o.world.empty()) {
    const int64_t world = one_or_more("--world", o.world), ranks = recipe_whole(recipe, "ranks");
    if (ranks != 1 && ranks != world) refuse("--world is ", world, ", but --ranks is ", ranks, "; leave --ranks out");
    ask(st_recipe_set(recipe.get(), "ranks", std::to_string(world).c_str()));
    options["processes"] = true;
    // As `scaletrain train` does (train.cpp).
    options["late_parameters"] = recipe_whole(recipe, "zero") == 3 || recipe_text(recipe, "precision") != "fp32";
  }
  if (!o.machine.empty()) options["machine"] = machine_choice(o.machine);
  if (!o.memory.empty()) options["device_memory"] = bytes_of("--device-memory", o.memory);
  if (!o.per_node.empty()) options["ranks_per_node"] = one_or_more("--ranks-per-node", o.per_node);
  if (!o.link.empty()) options["link"] = o.link;
  if (o.fixes) options["fixes"] = true;
  if (!o.slow.empty()) options["troubles"] = troubles_of(o.slow);
  if (const Json failures = failures_of(o); !failures.empty()) options["failures"] = failures;
  if (!o.report.empty() && !o.world.empty()) options["scaling"] = 16384;

  st_context_options late;
  ask(st_context_options_init(&late, sizeof late));
  late.late_parameters = 1;  // the model is only planned
  const auto context = make<Context>(st_context_create, &late);
  const ModelChoice choice(o.sizes);
  const Model model = choice.make(context.get(), 0);
  const std::string asked = options.dump();
  const auto plan = make<Plan>(st_plan_create, model.get(), recipe.get(), asked.c_str());
  if (!o.report.empty()) write_file(o.report, text(st_plan_report, plan.get()));
  if (!o.trace.empty()) write_file(o.trace, text(st_plan_trace, plan.get()));
  if (o.json)
    std::printf("%s\n", Json::parse(text(st_plan_json, plan.get())).dump().c_str());
  else
    std::printf("%s", text(st_plan_text, plan.get()));
  if (!o.memory.empty()) require_fit(Json::parse(text(st_plan_json, plan.get())), o.memory);
  return kDone;
}

}  // namespace

Command plan_command(CLI::App& app) {
  auto options = std::make_shared<PlanChoice>();
  CLI::App* command = app.add_subcommand("plan", "what each rank of a run would hold, send and wait for, on any machine");
  add_options(*command, *options);
  return {command, [options] { return run(*options); }};
}

}  // namespace cli

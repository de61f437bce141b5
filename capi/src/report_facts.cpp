#include "report_facts.h"

#include "base/json.h"
#include "base/json_line.h"
#include "base/os/cpu.h"
#include "base/os/machine.h"
#include "plan/wire_bytes.h"

namespace st::capi {
namespace {

std::string plain(const Json& value) { return value.is(Json::Kind::text) ? value.text() : value.dump(); }

void take_facts(RunSummary& run, std::string_view facts) {
  if (facts.empty()) return;
  const Json object = parse_json(facts, "report: facts");
  check(object.is(Json::Kind::object), "report: facts must be a JSON object, got ", object.dump());
  for (const auto& [key, value] : object.members()) {
    if (key == "title") {
      run.title = plain(value);
    } else if (key == "subtitle") {
      run.subtitle = plain(value);
    } else if (key == "prompt") {
      run.prompt = plain(value);
    } else if (key == "sample") {
      run.sample = plain(value);
    } else if (key == "bigram_loss" && value.is_number()) {
      run.bigram_loss = value.number();
    } else if (value.is(Json::Kind::object)) {
      FactGroup group{key, {}};
      for (const auto& [name, text] : value.members()) group.facts.push_back({name, plain(text)});
      run.facts.push_back(group);
    }
  }
}

FactGroup recipe_facts(const Recipe& recipe) {
  FactGroup group{"Recipe", {}};
  for (const RecipeKey& key : recipe_keys()) group.facts.push_back({key.name, plain(parse_json(recipe.get(key.name), key.name))});
  return group;
}

FactGroup machine_facts(const TrainerObject& t) {
  const Context& context = t.trainer->model().context();
  std::string kernels(context.backend().kernel_class());
  for (const auto& [library, count] : products_by_library(t.trainer->plan().program))
    if (library != "own") kernels += text(", ", count, " products by ", library);
  return {"Machine",
          {{"processor", os::cpu().brand},
           {"device", std::string(context.backend().name())},
           {"kernels", kernels},
           {"threads", std::to_string(context.threads())}}};
}

/// The context's peak memory, which may include more than the run.
FactGroup memory_facts(const TrainerObject& t) {
  const MemoryAccount::Uses uses = t.trainer->model().context().memory()->account().uses();
  FactGroup group{"Memory at its peak", {{"all", text_of_bytes(uses.all.peak)}}};
  for (size_t role = 0; role < uses.of.size(); ++role)
    if (uses.of[role].peak > 0)
      group.facts.push_back({std::string(name_of(static_cast<MemoryRole>(role))), text_of_bytes(uses.of[role].peak)});
  return group;
}

std::string recompute_json(const RecomputeRecord& record) {
  const auto add_cost = [](JsonLine& to, const OpCost& cost) { to.add("extra_flops", cost.flops).add("extra_bytes", cost.bytes); };
  std::vector<std::string> scopes;
  for (const RecomputedScope& scope : record.scopes) {
    JsonLine row;
    row.add("scope", scope.name).add("stash_saved", scope.stash_bytes).add("operations", scope.nodes);
    add_cost(row, scope.cost);
    scopes.push_back(row.text());
  }
  JsonLine all;
  all.add("stash_before", record.stash_before).add("stash_after", record.stash_after);
  add_cost(all, record.cost());
  return all.add_json("scopes", json_list(scopes)).text();
}

std::string rank_json(const Plan& plan, int64_t micro_batches) {
  const MemoryLayout& memory = plan.memory;
  JsonLine bytes;
  for (int32_t a = 0; a < static_cast<int32_t>(Arena::host); ++a)
    bytes.add(name_of(static_cast<Arena>(a)), memory.bytes[static_cast<size_t>(a)]);
  bytes.add("device_total", memory.device_bytes()).add("host_total", memory.host_bytes()).add("file_total", memory.file_bytes());
  bytes.add("no_reuse", memory.no_reuse_bytes);
  const WireBytes sent = wire_bytes(plan, micro_batches);
  JsonLine rank, wire;
  wire.add("reduce_scatter", sent.reduce_scatter).add("all_gather", sent.all_gather);
  wire.add("rank_sums", sent.rank_sums).add("gather_squares", sent.gather_squares).add("messages", sent.messages);
  wire.add("tensor", sent.tensor);
  rank.add_json("memory", bytes.text()).add("wire_bytes", sent.all()).add_json("wire", wire.text()).add("collectives", sent.collectives);
  JsonLine products;
  for (const auto& [library, count] : products_by_library(plan.program)) products.add(library, count);
  rank.add_json("products", products.text());
  rank.add_json("recompute", recompute_json(plan.recompute));
  rank.add("batch", plan.program.batch).add("micro_batches", plan.micro_batches).add("instructions", plan.instructions.size());
  return rank.text();
}

}  // namespace

RunSummary summary_of(const TrainerObject& t, std::string_view facts) {
  RunSummary run;
  run.title = "Training run";
  run.steps = t.history.steps();
  const std::span<const StepTimes> timeline = t.trainer->timeline();
  run.timeline.assign(timeline.begin(), timeline.end());
  if (const Recipe& recipe = t.trainer->recipe(); recipe.stages > 1) {
    run.pipeline = t.trainer->pipeline_times();
    run.schedule = is_schedule_table(recipe.schedule) ? "the host's table" : recipe.schedule;
    run.schedule_bubble = bubble(schedule_of(recipe), {});
  }
  run.validation = t.evaluations;
  run.step_past_schedule = t.trainer->step_past_schedule();
  const MemoryLayout& memory = t.trainer->plan().memory;
  for (int32_t a = 0; a < kArenas; ++a)
    if (memory.bytes[static_cast<size_t>(a)] > 0)
      run.memory.push_back({std::string(name_of(static_cast<Arena>(a))), memory.bytes[static_cast<size_t>(a)]});
  run.parameters = t.trainer->model().elements();
  run.seconds = os::seconds() - t.started;
  run.state = t.trainer->known_state_digest("st_trainer_write_report");
  take_facts(run, facts);
  run.facts.push_back(recipe_facts(t.trainer->recipe()));
  run.facts.push_back(memory_facts(t));
  run.facts.push_back(machine_facts(t));
  return run;
}

std::string plan_json(const Trainer& trainer) {
  std::vector<std::string> ranks;
  for (const Plan* plan : trainer.plans()) ranks.push_back(rank_json(*plan, trainer.recipe().step_micro_batches()));
  JsonLine whole;
  return whole.add("rows_per_step", trainer.rows_per_step()).add_json("ranks", json_list(ranks)).text();
}

}  // namespace st::capi

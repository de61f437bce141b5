#include "base/json_line.h"
#include "planner/plan_answer.h"
#include "planner/textbook.h"

namespace st {
namespace {

std::string json_of(const MemoryUse& use) {
  JsonLine line;
  int64_t offloaded = use.file;
  for (size_t a = 0; a < static_cast<size_t>(Arena::host); ++a) {
    line.add(name_of(static_cast<Arena>(a)), use.device[a] + use.host[a]);
    offloaded += use.host[a];
  }
  line.add("reserved", use.reserved).add("offloaded", offloaded);
  return line.add("device_total", use.device_total()).add("host_total", use.host_total()).add("file_total", use.file).text();
}

/// Data, tensor and stage.
std::string json_of(const std::array<AxisTraffic, kMeshAxes>& traffic) {
  JsonLine line;
  for (size_t axis = 0; axis < traffic.size(); ++axis) {
    JsonLine of_axis;
    of_axis.add("bytes", traffic[axis].bytes).add("collectives", traffic[axis].collectives);
    line.add_json(name_of(static_cast<MeshAxis>(axis)), of_axis.text());
  }
  return line.text();
}

std::string json_of(const Fix& fix) {
  JsonLine line, changes;
  for (const KeyChange& change : fix.changes) changes.add_json(change.key, change.value);
  line.add("text", fix.text()).add_json("recipe", changes.text()).add("fits", fix.fits).add("device_total", fix.device_total);
  return line.add("step_seconds", fix.step_seconds).add("changes_results", fix.changes_results).text();
}

std::string json_of(const RunPlan& all, const SimulatedStep& step) {
  JsonLine line;
  std::vector<std::string> classes;
  for (const RankClass& of : all.classes()) {
    JsonLine row;
    const SimulatedRank& rank = step.ranks[static_cast<size_t>(of.first)];
    row.add("first_rank", of.first).add("ranks", of.ranks).add("stage", of.at.stage);
    row.add_json("memory", json_of(of.numbers.memory)).add_json("wire", json_of(of.numbers.traffic));
    row.add("computing_seconds", rank.computed).add("waiting_seconds", rank.waited);
    classes.push_back(row.text());
  }
  line.add("step_seconds", step.seconds()).add("idle", step.idle()).add("tokens_per_second", all.run().tokens_per_step() / step.seconds());
  return line.add("fits", all.fits()).add_json("classes", json_list(classes)).text();
}

}  // namespace

std::string json_of(const PlanAnswer& answer) {
  const RankPlan& plan = answer.of_rank;
  const PlannedRun& run = answer.run;
  JsonLine line, at, book;
  const Mesh mesh = run.mesh();
  const double seconds = plan.step_seconds(run.recipe);
  int64_t bytes = 0, collectives = 0;
  for (const AxisTraffic& traffic : plan.numbers.traffic) {
    bytes += traffic.bytes;
    collectives += traffic.collectives;
  }
  at.add("data", plan.at.data).add("tensor", plan.at.tensor).add("stage", plan.at.stage);
  line.add("rank", answer.rank).add("world", run.recipe.ranks).add_json("position", at.text());
  at.start();
  at.add("data", mesh.data).add("tensor", mesh.tensor).add("stage", mesh.stage);
  line.add_json("mesh", at.text())
      .add("machine", run.machine.name)
      .add("source", run.machine.source)
      .add("measured", run.machine.is_measured);
  line.add_json("memory", json_of(plan.numbers.memory)).add("device_memory", run.device_memory_of_rank()).add("fits", answer.fits());
  line.add("wire_bytes", bytes).add_json("wire", json_of(plan.numbers.traffic)).add("collectives", collectives);
  line.add("flops", plan.numbers.flops).add("repeated_flops", plan.numbers.repeated_flops).add("instructions", plan.numbers.instructions);
  line.add("bubble", plan.bubble(run.recipe)).add("step_seconds", seconds).add("tokens_per_step", run.tokens_per_step());
  const Textbook textbook_of = textbook(run);
  book.add("parameters", textbook_of.parameters).add("bytes_per_parameter", textbook_of.per_parameter());
  book.add("data_parallel", textbook_of.data_parallel()).add("zero_3", textbook_of.zero_3(run.recipe.ranks));
  line.add_json("textbook", book.text());
  std::vector<std::string> fixes;
  for (const Fix& fix : answer.fixes) fixes.push_back(json_of(fix));
  line.add_json("fixes", json_list(fixes));
  if (answer.step != nullptr) line.add_json("simulation", json_of(*answer.all, *answer.step));
  return line.text();
}

}  // namespace st

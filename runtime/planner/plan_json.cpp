#include "base/json_line.h"
#include "planner/blueprint.h"
#include "planner/textbook.h"

namespace st {
namespace {

std::string json_of(const PlannedMemory& use) {
  JsonLine line;
  int64_t offloaded = use.file;
  for (size_t a = 0; a < static_cast<size_t>(Arena::host); ++a) {
    line.add(name_of(static_cast<Arena>(a)), use.device[a] + use.host[a]);
    offloaded += use.host[a];
  }
  line.add("inputs", use.inputs).add("terms", use.terms).add("pinned", use.pinned);
  line.add("reserved", use.reserved).add("network", use.network).add("recordings", use.recordings).add("offloaded", offloaded);
  return line.add("device_total", use.device_total()).add("host_total", use.host_total()).add("file_total", use.file).text();
}

std::string json_of(const LinkBytes& of) {
  JsonLine line;
  return line.add("in_node", of.in_node).add("between_nodes", of.between_nodes).text();
}

/// Data, tensor and stage.
std::string json_of(const std::array<AxisTraffic, kMeshAxes>& traffic) {
  JsonLine line;
  for (size_t axis = 0; axis < traffic.size(); ++axis) {
    JsonLine of_axis;
    of_axis.add("bytes", traffic[axis].bytes).add("collectives", traffic[axis].collectives).add("nodes", traffic[axis].nodes);
    of_axis.add_json("direct", json_of(traffic[axis].direct)).add_json("native", json_of(traffic[axis].native));
    line.add_json(name_of(static_cast<MeshAxis>(axis)), of_axis.text());
  }
  return line.text();
}

std::string json_of(const Fix& fix) {
  JsonLine line, changes;
  for (const KeyChange& change : fix.changes) changes.add_json(change.key, change.value);
  line.add("text", fix.text()).add_json("recipe", changes.text()).add("fits", fix.fits).add("device_total", fix.device_total);
  line.add("missing", fix.missing).add("nearest", fix.is_nearest);
  line.add("step_seconds", fix.step_seconds).add("changes_results", fix.changes_results);
  if (fix.speedup > 0) line.add("speedup", fix.speedup);
  return line.text();
}

std::string json_of(const StepShares& of) {
  JsonLine shares;
  shares.add("computing", of.computing).add("bubble", of.bubble);
  for (size_t axis = 0; axis < of.exchange.size(); ++axis) shares.add(name_of(static_cast<MeshAxis>(axis)), of.exchange[axis]);
  return shares.text();
}

std::string json_of(const SpeedLimit& of) {
  JsonLine line;
  line.add("name", of.name()).add("share", of.share);
  if (of.is_bubble) return line.text();
  line.add("axis", name_of(of.axis)).add("bytes_per_second", of.bytes_per_second);
  return line.add("step_seconds_at_twice", of.seconds_at_twice).text();
}

std::string json_of(const Goodput& of) {
  JsonLine line;
  line.add("share", of.share).add("steps_between_saves", of.steps_between_saves).add("steps", of.steps).add("lost_nodes", of.lost_nodes);
  line.add("lost_steps", of.lost_steps).add("saves", of.saves).add("seconds", of.seconds).add("saving_seconds", of.saving);
  return line.add("repeating_seconds", of.repeating).add("restarting_seconds", of.restarting).add("ends", of.ends).text();
}

std::string json_of(const Candidate& of) {
  JsonLine line, changes;
  for (const KeyChange& change : of.changes) changes.add_json(change.key, change.value);
  line.add_json("recipe", changes.text()).add("fits", of.fits).add("device_total", of.device_total);
  return line.add("step_seconds", of.step_seconds).add_json("seconds", json_of(of.shares)).text();
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

std::string Blueprint::json() const {
  JsonLine line, at, mesh_line, book;
  const Mesh mesh = run_.mesh();
  const RankNumbers& numbers = of_rank_.numbers;
  int64_t bytes = 0, collectives = 0;
  for (const AxisTraffic& traffic : numbers.traffic) {
    bytes += traffic.bytes;
    collectives += traffic.collectives;
  }
  at.add("data", of_rank_.at.data).add("tensor", of_rank_.at.tensor).add("stage", of_rank_.at.stage);
  mesh_line.add("data", mesh.data).add("tensor", mesh.tensor).add("stage", mesh.stage);
  line.add("rank", rank_).add("world", run_.recipe.ranks).add_json("position", at.text()).add_json("mesh", mesh_line.text());
  line.add("machine", run_.machine.name).add("source", run_.machine.source).add("measured", run_.machine.is_measured);
  line.add_json("memory", json_of(numbers.memory)).add("device_memory", run_.device_memory_of_rank()).add("fits", fits());
  line.add("wire_bytes", bytes).add_json("wire", json_of(numbers.traffic)).add("collectives", collectives);
  line.add("flops", numbers.flops).add("repeated_flops", numbers.repeated_flops).add("instructions", numbers.instructions);
  const double seconds = shares_.all();
  line.add("bubble", seconds > 0 ? shares_.bubble / seconds : 0).add("step_seconds", seconds);
  line.add_json("seconds", json_of(shares_));
  if (on_one_rank_ > 0) line.add("one_rank_seconds", on_one_rank_);
  if (limit_) line.add_json("limit", json_of(*limit_));
  line.add("tokens_per_step", run_.tokens_per_step());
  const Textbook of_book = textbook(run_);
  book.add("parameters", of_book.parameters).add("bytes_per_parameter", of_book.per_parameter());
  book.add("data_parallel", of_book.data_parallel()).add("zero_3", of_book.zero_3(run_.recipe.ranks));
  line.add_json("textbook", book.text()).add_json("recipe", run_.recipe.json());
  std::vector<std::string> fixes, found, stages;
  for (const PlannedStage& of : stages_) {
    JsonLine row;
    row.add("stage", of.stage).add("rank", of.rank).add("device_total", of.memory.device_total()).add("fits", fits(of.memory));
    stages.push_back(row.text());
  }
  line.add_json("stages", json_list(stages));
  for (const Fix& fix : fixes_) fixes.push_back(json_of(fix));
  for (const Candidate& of : found_.best) found.push_back(json_of(of));
  line.add_json("fixes", json_list(fixes));
  if (!found.empty()) line.add_json("found", json_list(found));
  if (step_) line.add_json("simulation", json_of(*all_, *step_));
  if (goodput_) line.add_json("goodput", json_of(*goodput_));
  return line.text();
}

}  // namespace st

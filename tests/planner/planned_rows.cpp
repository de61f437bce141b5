// Plans published configurations: what each would hold on a device and how long its step would take here.
//
// Usage: planned_rows CSV [ID...]    CSV: published_runs.csv of this folder; without IDs, all of its rows
//
// Prints CSV with one line a row: id, why it cannot be planned (empty: it is planned), the fullest stage's bytes by arena and in all, the
// device's bytes, FLOP of a step on one device, FLOP/s of products, seconds of parts of the step on the first stage, and seconds of the
// step with these products and with faster and slower ones.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "planner/pipeline_lane.h"

namespace {

using namespace st;

using Row = std::map<std::string, std::string>;

constexpr std::array kPaces = {1.0, 0.5, 0.75, 1.4, 2.0};  // of products, against the machine's
constexpr std::array kArenaNames = {Arena::parameters, Arena::gradients, Arena::optimizer, Arena::activations,
                                    Arena::stash,      Arena::buckets,   Arena::packed};

constexpr double kLinkShare = 0.8;  // as the catalog has it

/// Sources that ran Megatron-LM, or what is made of it.
constexpr std::array<std::string_view, 7> kMegatron = {"dgxc", "dlperf-meg", "jz-v100", "sc21", "seqpar", "tr11", "tr3m"};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream rest(line);
  for (std::string cell; std::getline(rest, cell, ',');) cells.push_back(cell);
  return cells;
}

std::vector<Row> rows_of(const char* path) {
  std::ifstream file(path);
  check(file.good(), "cannot read ", path);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    std::vector<std::string> cells = cells_of(line);
    cells.resize(names.size());
    Row& row = rows.emplace_back();
    for (size_t i = 0; i < names.size(); ++i) row[names[i]] = cells[i];
  }
  return rows;
}

int64_t number(const Row& row, const char* name, int64_t otherwise) {
  const std::string& cell = row.at(name);
  return cell.empty() ? otherwise : std::stoll(cell);
}
int64_t number(const Row& row, const char* name) {
  check(!row.at(name).empty(), "the source does not say ", name);
  return number(row, name, 0);
}

bool is_megatron(const Row& row) {
  const std::string& id = row.at("id");
  return std::ranges::count(kMegatron, std::string_view(id).substr(0, id.rfind('-'))) > 0;
}

/// Megatron-LM, and NeMo, pad the table of tokens, so that it can be cut for the tensor ranks (make_vocab_size_divisible_by).
int64_t vocabulary_of(const Row& row) {
  const int64_t given = number(row, "vocabulary");
  if (!is_megatron(row)) return given;
  const int64_t unit = 128 * number(row, "tensor");
  return (given + unit - 1) / unit * unit;
}

/// GPT-2 with the published sizes; or a Llama, whose three products of the MLP stand for two of another width where the MLP has no gate.
Program model_of(const Row& row) {
  const std::string& family = row.at("model_family");
  const int64_t width = number(row, "hidden"), heads = number(row, "heads"), ffn = number(row, "ffn");
  if (family.find("gpt") != std::string::npos) {
    check(ffn == 4 * width, "a GPT's MLP is not 4 times as wide as the model");
    return build_gpt({.layers = number(row, "layers"),
                      .width = width,
                      .heads = heads,
                      .context = number(row, "sequence"),
                      .vocabulary = vocabulary_of(row)});
  }
  const bool is_gated = family != "nemotron";
  return build_llama({.layers = number(row, "layers"),
                      .width = width,
                      .heads = heads,
                      .groups = number(row, "kv_heads", heads),
                      .context = number(row, "sequence"),
                      .vocabulary = vocabulary_of(row),
                      .ffn = is_gated ? ffn : ffn * 2 / 3,
                      .tied_embedding = row.at("tied_embedding") == "1"});
}

void set_recompute(const Row& row, Recipe& recipe) {
  const std::string& how = row.at("recompute");
  check(!how.empty(), "the source does not say what is recomputed");
  // Selective recomputation of the attention core is what the fused attention does anyway.
  check(how != "selective" || row.at("recompute_detail") != "a part of the blocks", "recomputes a part of the blocks that is not said");
  recipe.recompute = how == "full" ? "blocks" : "none";
}

/// Where Megatron-LM, and NeMo, cut the model: parts of as many blocks, the first one with the embedding, the last one with the head. Else
/// the embedding and the head count as a block each (as in BigScience's 176B); empty if that does not divide either.
std::string starts_of_parts(int64_t layers, int64_t parts) {
  const int64_t ends = layers % parts == 0 ? 0 : 1, of_part = (layers + 2 * ends) / parts;
  if (of_part * parts != layers + 2 * ends) return "";
  std::string starts;
  for (int64_t part = 1; part < parts; ++part) starts += text(part > 1 ? "," : "", "block.", part * of_part - ends);
  return starts;
}

void set_schedule(const Row& row, Recipe& recipe) {
  recipe.stages = number(row, "pipeline");
  const int64_t chunks = number(row, "interleave_chunks", 1), layers = number(row, "layers"), parts = recipe.stages * chunks;
  if (is_megatron(row)) recipe.stage_starts = starts_of_parts(layers, parts);
  if (chunks == 1) return;
  recipe.schedule = "interleaved";
  recipe.stage_chunks = chunks;
}

void set_sharding(const Row& row, Recipe& recipe) {
  const int64_t stage = number(row, "zero_stage", row.at("optimizer").find("distrib") != std::string::npos ? 1 : 0);
  recipe.zero = recipe.ranks > recipe.stages * recipe.tensor ? stage : 0;
  // FSDP, as ZeRO 2 and 3, reduces after each micro-batch into shards; others add up first.
  recipe.reduce = stage >= 2 ? "micro" : "step";
  recipe.gradient_dtype = row.at("gradient_sent").empty() ? "fp32" : row.at("gradient_sent");
  recipe.accumulate_dtype = row.at("gradient_kept").empty() ? "fp32" : row.at("gradient_kept");
  const std::string& offload = row.at("offload");
  check(offload.find("activation") == std::string::npos, "activations are kept by the host");
  if (!offload.empty()) recipe.offload = "gradients";  // DeepSpeed's optimizer has them on the host, and the fp32 parameters
}

Recipe recipe_of(const Row& row) {
  Recipe recipe;
  recipe.precision = row.at("precision");
  recipe.residual_dtype = recipe.precision;  // so do the sources: README.md
  recipe.ranks = number(row, "gpus");
  recipe.tensor = number(row, "tensor");
  set_schedule(row, recipe);
  const int64_t data = recipe.ranks / (recipe.tensor * recipe.stages);
  check(data * recipe.tensor * recipe.stages == recipe.ranks, "tensor and pipeline sizes do not multiply to the GPUs");
  recipe.batch = number(row, "micro_batch");
  const int64_t batch = number(row, "global_batch");
  check(batch % (recipe.batch * data) == 0, "the global batch is no multiple of micro-batch and data ranks");
  recipe.accumulate = batch / (recipe.batch * data);
  set_recompute(row, recipe);
  set_sharding(row, recipe);
  return recipe;
}

std::string machine_name(const std::string& gpu, int64_t memory) {
  if (gpu == "A100") return memory == 40 ? "a100-40g" : "a100-80g";
  if (gpu == "A800") return "a800-80g";
  if (gpu == "H100") return "h100-sxm";
  if (gpu == "H200") return "h200";
  check(gpu == "V100", "no machine of the catalog has the GPU ", gpu);
  return memory == 16 ? "v100-16g" : "v100-32g";
}

/// The catalog's, with the row's memory, devices of a node, and network where the source says it.
Machine machine_of_row(const Row& row) {
  const int64_t memory = number(row, "gpu_memory_gb", 0);
  Machine machine = machine_named(machine_name(row.at("gpu"), memory));
  if (row.at("gpu") == "H100" && memory > 80) machine.device_memory = machine.device_memory / 80 * memory;
  machine.ranks_per_node = static_cast<int32_t>(number(row, "gpus_per_node", 8));
  if (const std::string& link = row.at("network_gbit"); !link.empty())
    machine.between_nodes.bytes_per_second = kLinkShare * std::stod(link) / 8 * 1e9;
  return machine;
}

Machine with_pace(Machine machine, double pace) {
  for (RateSet& set : machine.rates)
    for (OpRate& rate : set.ops) rate.per_flop /= pace;
  return machine;
}

/// One rank of each stage; in a long pipeline of some stages. Ranks along other axes have the same work, so that their collectives end when
/// they would end here.
struct PlannedRow {
  PlannedRun run;
  std::vector<RankPlan> stages;
  std::vector<StageLink> links;

  bool has_all() const { return static_cast<int64_t>(stages.size()) == run.recipe.stages; }

  double seconds(double pace) {
    const Machine machine = with_pace(run.machine, pace);
    double longest = 0, wait = 0;  // a long pipeline: the work of its slowest stage, and the wait that the schedule leaves to a middle one
    for (RankPlan& rank : stages) {
      rank.trace = trace_of(rank.plan, {run.recipe.step_micro_batches(), machine, run.placement(), run.threads()});
      if (has_all()) continue;
      const double step = rank.step_seconds(run.recipe), idle = rank.bubble(run.recipe) * step;
      longest = std::max(longest, step - idle);
      if (rank.at.stage == run.recipe.stages / 2) wait = idle;
    }
    if (!has_all()) return longest + wait;
    std::vector<const RankTrace*> traces;
    for (const RankPlan& rank : stages) traces.push_back(&rank.trace);
    return shares_in_lane(traces, links, 0).all();
  }
};

std::set<int32_t> stages_to_plan(const Mesh& mesh) {
  constexpr int32_t kAll = 6;
  std::set<int32_t> stages = {0, std::min(1, mesh.stage - 1), mesh.stage / 2, mesh.stage - 1};
  for (int32_t stage = 0; stage < mesh.stage && mesh.stage <= kAll; ++stage) stages.insert(stage);
  return stages;
}

double exchange_seconds(const RankTrace& trace, MeshAxis axis) {
  double seconds = 0;
  for (const TraceEvent& event : trace.events)
    if ((event.kind == TraceEvent::Kind::exchange || event.kind == TraceEvent::Kind::post) && event.axis == axis) seconds += event.seconds;
  return seconds;
}

/// Of the first stage: kernels in all, and without their arithmetic; collectives of tensor and data ranks, hidden ones included.
void print_parts(const PlannedRow& planned) {
  constexpr double kInstantly = 1e9;
  const PlannedRun& run = planned.run;
  const RankPlan& first = planned.stages.front();
  const Machine machine = with_pace(run.machine, kInstantly);
  const RankTrace rest = trace_of(first.plan, {run.recipe.step_micro_batches(), machine, run.placement(), run.threads()});
  std::printf(",%.5g,%.5g,%.5g,%.5g", first.trace.seconds_of(TraceEvent::Kind::compute), rest.seconds_of(TraceEvent::Kind::compute),
              exchange_seconds(first.trace, MeshAxis::tensor), exchange_seconds(first.trace, MeshAxis::data));
}

void print_plan(const Row& row) {
  PlannedRow planned{{model_of(row), recipe_of(row), machine_of_row(row), false, true}, {}, {}};
  const Mesh mesh = planned.run.mesh();
  double flops = 0;
  const PlannedMemory* fullest = nullptr;
  for (const int32_t stage : stages_to_plan(mesh))
    planned.stages.push_back(plan_of_rank(planned.run, rank_at(mesh, {.data = 0, .tensor = 0, .stage = stage})));
  planned.links = planned.stages.front().plan.program.links;
  for (const RankPlan& rank : planned.stages) {
    flops += rank.numbers.flops / static_cast<double>(planned.stages.size());
    if (fullest == nullptr || rank.numbers.memory.device_total() > fullest->device_total()) fullest = &rank.numbers.memory;
  }
  std::printf("%s,", row.at("id").c_str());
  for (const Arena arena : kArenaNames) std::printf(",%lld", static_cast<long long>(fullest->device[static_cast<size_t>(arena)]));
  std::printf(",%lld,%lld,%.6g", static_cast<long long>(fullest->device_total() - fullest->terms),  // which NCCL's own sums need not
              static_cast<long long>(planned.run.device_memory_of_rank()), flops);
  const OpRate* const products = planned.run.machine.rates.front().find(row.at("precision") == "bf16" ? "products.bf16" : "products.f16");
  std::printf(",%.6g", 1 / products->per_flop);
  print_parts(planned);
  for (const double pace : kPaces) std::printf(",%.5g", planned.seconds(pace));
  std::printf("\n");
}

void print_row(const Row& row) {
  try {
    print_plan(row);
  } catch (const Error& error) {
    std::string why = error.message();
    for (char& c : why)
      if (c == ',' || c == '\n') c = ';';
    std::printf("%s,%s\n", row.at("id").c_str(), why.c_str());
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    check(count > 1, "usage: planned_rows CSV [ID...]");
    const std::vector<std::string> ids(words + 2, words + count);
    std::printf(
        "id,why_not,parameters,gradients,optimizer,activations,stash,buckets,packed,device_total,device_memory,flop,flop_s,"
        "kernels,moved,tensor_exchanges,data_exchanges");
    for (const double pace : kPaces) std::printf(",seconds_%g", pace);
    std::printf("\n");
    for (const Row& row : rows_of(words[1]))
      if (ids.empty() || std::ranges::find(ids, row.at("id")) != ids.end()) {
        print_row(row);
        std::fflush(stdout);
      }
  } catch (const Error& error) {
    std::fprintf(stderr, "planned_rows: %s\n", error.message().c_str());
    return 1;
  }
  return 0;
}

#include "plan/plan.h"

#include <algorithm>
#include <utility>

#include "plan/weight_copies.h"

namespace st {
namespace {

bool runs_in(When when, int64_t micro_batch, int64_t micro_batches) {
  switch (when) {
    case When::every:
      return true;
    case When::first:
      return micro_batch == 0;
    case When::rest:
      return micro_batch > 0;
    case When::last:
      return micro_batch + 1 == micro_batches;
  }
  return false;
}

bool is_made_in_place(const Plan& plan, int32_t section, const Node& node) {
  if (node.op != Op::store) return false;
  const Value v = node.in[0];
  const Place& value = plan.memory.values[static_cast<size_t>(section)][static_cast<size_t>(v.node)][static_cast<size_t>(v.output)];
  return value.arena != Arena::host && value == plan.memory.slots[static_cast<size_t>(node.writes[0])];
}

void append_section(Plan& plan, int32_t section, int64_t micro_batch, const std::vector<Copy>& copies) {
  const Graph& graph = plan.program.sections[static_cast<size_t>(section)].graph;
  for (int32_t n = 0; n < graph.size(); ++n) {
    const Node& node = graph[n];
    if (!runs_in(node.when, micro_batch, plan.micro_batches) || is_view(node.op) || is_made_in_place(plan, section, node)) continue;
    plan.instructions.push_back({section, n, static_cast<int32_t>(micro_batch), copies[static_cast<size_t>(n)]});
  }
}

}  // namespace

std::map<std::string, int64_t> products_by_library(const Program& program) {
  std::map<std::string, int64_t> counts;
  for (const Section& section : program.sections)
    for (int32_t n = 0; n < section.graph.size(); ++n) {
      const Attrs& attrs = section.graph[n].attrs;
      if (!attrs.has("library")) continue;
      const std::string& library = attrs.word("library");
      ++counts[library.empty() ? "own" : library];
    }
  return counts;
}

Plan make_plan(Program program, MemoryLayout memory, int64_t micro_batches) {
  Plan plan{.program = std::move(program),
            .memory = std::move(memory),
            .micro_batches = micro_batches,
            .instructions = {},
            .passes = {},
            .recompute = {}};
  const auto sections = static_cast<int32_t>(plan.program.sections.size());
  const std::vector<std::vector<Copy>> copies = weight_copies(plan.program);
  const auto phase = [&](int32_t s) { return plan.program.sections[static_cast<size_t>(s)].phase; };
  for (int64_t k = 0; k < micro_batches; ++k)
    for (int32_t s = 0; s < sections; ++s)
      if (phase(s) != Phase::update) append_section(plan, s, k, copies[static_cast<size_t>(s)]);
  for (int32_t s = 0; s < sections; ++s)
    if (phase(s) == Phase::update) append_section(plan, s, micro_batches - 1, copies[static_cast<size_t>(s)]);
  return plan;
}

bool makes(const Plan& plan, Copy copy) {
  return std::ranges::find(plan.instructions, copy, &Instruction::makes) != plan.instructions.end();
}

}  // namespace st

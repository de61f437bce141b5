#include "passes/recompute_scopes.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "passes/scope_patterns.h"
#include "passes/stage_parts.h"

namespace st {
namespace {

/// The boundary scope around a scope; 0: none.
RegionId around(const Program& program, RegionId scope) { return program.boundary_of(program.regions[static_cast<size_t>(scope)].parent); }

std::vector<RegionId> with_attention(const Program& program) {
  std::set<RegionId> scopes;
  for (const Node& node : program.find(Phase::forward)->graph.nodes)
    if (node.op == Op::attention && program.boundary_of(node.region) > 0) scopes.insert(program.boundary_of(node.region));
  return {scopes.begin(), scopes.end()};
}

}  // namespace

std::vector<RegionId> outermost_scopes(const Program& program) { return scopes_directly_in(program, 0); }

std::vector<RegionId> scopes_directly_in(const Program& program, RegionId scope) {
  std::vector<RegionId> found;
  for (size_t r = 1; r < program.regions.size(); ++r)
    if (program.regions[r].boundary && around(program, static_cast<RegionId>(r)) == scope) found.push_back(static_cast<RegionId>(r));
  return found;
}

std::vector<RegionId> scopes_to_recompute(const Program& program, std::string_view policy) {
  if (policy == "none") return {};
  std::vector<RegionId> scopes;
  if (policy == "blocks") {
    scopes = outermost_scopes(program);
    const Graph& graph = program.find(Phase::forward)->graph;
    if (program.loss_sum) std::erase(scopes, outermost_of(program, graph[program.loss_sum.node].region));
  } else if (policy == "full") {
    scopes = outermost_scopes(program);
  } else if (policy == "attention") {
    scopes = with_attention(program);
  } else {
    return scopes_matching(program, policy, ScopeKind::boundary, "recompute", ". Or use none, blocks, attention, full or auto");
  }
  check(!scopes.empty(), "recompute: ", policy, " selects no scope; ", names_of_scopes(program, ScopeKind::boundary));
  return scopes;
}

}  // namespace st

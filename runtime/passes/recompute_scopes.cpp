#include "passes/recompute_scopes.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/error.h"
#include "base/glob.h"

namespace st {
namespace {

constexpr size_t kNamesShown = 20;

/// The boundary scope around a scope; 0: none.
RegionId around(const Program& program, RegionId scope) { return program.boundary_of(program.regions[static_cast<size_t>(scope)].parent); }

std::string names_of_scopes(const Program& program) {
  std::string names;
  size_t count = 0;
  for (const Region& region : program.regions) {
    if (region.name.empty() || !region.boundary) continue;
    if (++count <= kNamesShown) names += (names.empty() ? "" : ", ") + region.name;
  }
  if (count == 0) return "the graph has no boundary scope; open some with st_graph_scope where it is built";
  return text("the graph's scopes are ", names, count > kNamesShown ? text(" and ", count - kNamesShown, " more") : "");
}

std::vector<RegionId> matching(const Program& program, std::string_view pattern) {
  std::vector<RegionId> found;
  std::vector<std::string> names;
  for (size_t r = 1; r < program.regions.size(); ++r) {
    if (!program.regions[r].boundary) continue;
    names.push_back(program.regions[r].name);
    if (matches_glob(pattern, names.back())) found.push_back(static_cast<RegionId>(r));
  }
  if (found.empty()) {
    const std::string near = nearest(pattern, names);
    fail(Code::invalid_argument,
         text("recompute: no scope is named \"", pattern, "\"", near.empty() ? "" : text(", is \"", near, "\" meant?"), "; ",
              names_of_scopes(program), ". Or use none, blocks, attention, full or auto"));
  }
  return found;
}

std::vector<RegionId> matching_any(const Program& program, std::string_view patterns) {
  std::set<RegionId> all;
  for (size_t at = 0; at <= patterns.size();) {
    const size_t end = std::min(patterns.find(',', at), patterns.size());
    const auto found = matching(program, patterns.substr(at, end - at));
    all.insert(found.begin(), found.end());
    at = end + 1;
  }
  return {all.begin(), all.end()};
}

RegionId outermost_around(const Program& program, RegionId region) {
  RegionId scope = program.boundary_of(region);
  while (scope > 0 && around(program, scope) > 0) scope = around(program, scope);
  return scope;
}

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
    if (program.loss_sum) std::erase(scopes, outermost_around(program, graph[program.loss_sum.node].region));
  } else if (policy == "full") {
    scopes = outermost_scopes(program);
  } else if (policy == "attention") {
    scopes = with_attention(program);
  } else {
    return matching_any(program, policy);
  }
  check(!scopes.empty(), "recompute: ", policy, " finds no scope; ", names_of_scopes(program));
  return scopes;
}

}  // namespace st

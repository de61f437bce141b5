#include "passes/scope_patterns.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/glob.h"
#include "base/text.h"

namespace st {
namespace {

constexpr size_t kNamesShown = 20;

bool is_of(const Region& region, ScopeKind kind) { return !region.name.empty() && (kind == ScopeKind::any || region.boundary); }

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace

std::string names_of_scopes(const Program& program, ScopeKind kind) {
  std::string names;
  size_t count = 0;
  for (const Region& region : program.regions) {
    if (!is_of(region, kind)) continue;
    if (++count <= kNamesShown) names += (names.empty() ? "" : ", ") + region.name;
  }
  if (count == 0)
    return text("the graph has no ", kind == ScopeKind::any ? "" : "boundary ", "scope; open one with st_graph_scope when building it");
  return text("the graph's scopes are ", names, count > kNamesShown ? text(" and ", count - kNamesShown, " more") : "");
}

std::vector<RegionId> scopes_matching(const Program& program, std::string_view patterns, ScopeKind kind, std::string_view who,
                                      std::string_view instead) {
  std::vector<std::string> names(program.regions.size());
  for (size_t r = 0; r < names.size(); ++r)
    if (is_of(program.regions[r], kind)) names[r] = program.regions[r].name;
  std::set<RegionId> found;
  for (size_t at = 0; at <= patterns.size();) {
    const size_t end = std::min(patterns.find(',', at), patterns.size());
    const std::string_view pattern = trimmed(patterns.substr(at, end - at));
    bool is_known = false;
    for (size_t r = 0; r < names.size(); ++r) {
      if (names[r].empty() || !matches_glob(pattern, names[r])) continue;
      is_known = true;
      found.insert(static_cast<RegionId>(r));
    }
    if (!is_known) {
      std::erase(names, std::string());
      const std::string near = nearest(pattern, names);
      fail(Code::invalid_argument,
           text(who, ": no scope is named \"", pattern, "\"", near.empty() ? "" : text("; did you mean \"", near, "\"?"), "; ",
                names_of_scopes(program, kind), instead));
    }
    at = end + 1;
  }
  return {found.begin(), found.end()};
}

}  // namespace st

#include "passes/stage_parts.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "passes/op_cost.h"

namespace st {
namespace {

/// An outermost scope, with the nodes outside of scopes that come after it.
struct ScopeRun {
  RegionId scope = 0;
  double cost = 0;
};

class ScopeRuns {
 public:
  explicit ScopeRuns(const Program& program) : program_(program) {
    const Graph& graph = program.find(Phase::forward)->graph;
    for (int32_t n = 0; n < graph.size(); ++n) add(graph, n);
    if (units_.empty()) units_.push_back({});
  }

  const std::vector<ScopeRun>& all() const { return units_; }
  int32_t of_node(int32_t n) const { return of_node_[static_cast<size_t>(n)]; }
  std::string name(int32_t unit) const {
    const RegionId scope = units_[static_cast<size_t>(unit)].scope;
    return scope > 0 ? program_.regions[static_cast<size_t>(scope)].name : "the nodes outside of scopes";
  }
  std::string names() const {
    constexpr int32_t kMost = 20;
    std::string out;
    const auto count = static_cast<int32_t>(units_.size());
    for (int32_t u = 0; u < std::min(count, kMost); ++u) out += text(u > 0 ? ", " : "", name(u));
    return count > kMost ? text(out, " and ", count - kMost, " more") : out;
  }

 private:
  void add(const Graph& graph, int32_t n) {
    const Node& node = graph[n];
    int32_t read = 0;  // the last unit that it reads from
    for (const Value v : node.in) read = std::max(read, of_node(v.node));
    int32_t unit = read;
    if (const RegionId scope = outermost_of(program_, node.region); scope > 0 && !is_made_anywhere(node)) {
      unit = static_cast<int32_t>(std::ranges::find(units_, scope, &ScopeRun::scope) - units_.begin());
      if (unit == std::ssize(units_)) units_.push_back({.scope = scope});
      check(read <= unit, "pipeline: scope ", name(unit), " reads what ", name(read),
            ", which comes after it, computes; parts of the model "
            "are scopes in order");
    }
    of_node_.push_back(unit);
    // Without what forward keeps for backward, so that recompute does not move a cut.
    const bool is_kept = node.op == Op::store && program_.slot(node.writes[0]).role == Role::stash;
    if (!units_.empty() && !is_kept) units_[static_cast<size_t>(unit)].cost += cost_of(graph, node).weight();
  }

  const Program& program_;
  std::vector<ScopeRun> units_;
  std::vector<int32_t> of_node_;
};

/// The first unit of each part in which the most expensive part is cheapest; of equally good ones, that with the later cuts.
std::vector<int32_t> balanced(const std::vector<ScopeRun>& units, int32_t parts) {
  const size_t count = units.size();
  std::vector<double> up_to(count + 1, 0);
  for (size_t u = 0; u < count; ++u) up_to[u + 1] = up_to[u] + units[u].cost;
  // best[p][u]: the cost of the most expensive of p parts of the first u units.
  std::vector<std::vector<double>> best(static_cast<size_t>(parts) + 1, std::vector<double>(count + 1, std::numeric_limits<double>::max()));
  std::vector<std::vector<size_t>> last(static_cast<size_t>(parts) + 1, std::vector<size_t>(count + 1, 0));
  best[0][0] = 0;
  for (size_t p = 1; p <= static_cast<size_t>(parts); ++p)
    for (size_t u = p; u <= count; ++u)
      for (size_t from = p - 1; from < u; ++from) {
        const double cost = std::max(best[p - 1][from], up_to[u] - up_to[from]);
        if (cost <= best[p][u]) {
          best[p][u] = cost;
          last[p][u] = from;
        }
      }
  std::vector<int32_t> first(static_cast<size_t>(parts));
  size_t end = count;
  for (size_t p = static_cast<size_t>(parts); p > 0; --p) {
    end = last[p][end];
    first[p - 1] = static_cast<int32_t>(end);
  }
  return first;
}

/// How good a cut is; earlier members decide first.
struct Balance {
  double dearest = 0;       // cost of the most expensive stage
  double uneven = 0;        // sum of the squares of the stages' costs: falls where `dearest` is tied
  double uneven_parts = 0;  // the same of the parts
  auto operator<=>(const Balance&) const = default;
};

/// For stages with several parts: begins with parts of equal cost, and while it gets better, gives a unit of one part to another. The parts
/// between these two then begin a unit earlier or later.
class StageBalance {
 public:
  StageBalance(const std::vector<ScopeRun>& units, std::span<const int32_t> stage_of)
      : stage_of_(stage_of), first_(balanced(units, static_cast<int32_t>(stage_of.size()))), of_stage_(stage_of.size()) {
    for (const ScopeRun& unit : units) up_to_.push_back(up_to_.back() + unit.cost);
    first_.push_back(static_cast<int32_t>(units.size()));
  }

  std::vector<int32_t> made() {
    for (Balance best = balance(); improve(best);) {
    }
    first_.pop_back();
    return std::move(first_);
  }

 private:
  struct Change {
    size_t from, to;  // parts
    int32_t by;       // -1: the last unit of `from` for `to`; 1: the first unit of `to` for `from`
  };

  void apply(const Change& change) {
    for (size_t part = change.from + 1; part <= change.to; ++part) first_[part] += change.by;
  }
  void take_back(const Change& change) { apply({change.from, change.to, -change.by}); }

  Balance balance() {
    std::ranges::fill(of_stage_, 0);
    Balance sum;
    for (size_t part = 0; part < stage_of_.size(); ++part) {
      const double cost = up_to_[static_cast<size_t>(first_[part + 1])] - up_to_[static_cast<size_t>(first_[part])];
      of_stage_[static_cast<size_t>(stage_of_[part])] += cost;
      sum.uneven_parts += cost * cost;
    }
    for (const double cost : of_stage_) {
      sum.dearest = std::max(sum.dearest, cost);
      sum.uneven += cost * cost;
    }
    return sum;
  }

  /// Makes the best of all changes that are better than `best`.
  bool improve(Balance& best) {
    std::optional<Change> chosen;
    const auto consider = [&](const Change& change) {
      apply(change);
      const Balance with = balance();
      if (with < best) {
        best = with;
        chosen = change;
      }
      take_back(change);
    };
    for (size_t from = 0; from < stage_of_.size(); ++from)
      for (size_t to = from + 1; to < stage_of_.size(); ++to) {
        if (first_[from + 1] - first_[from] > 1) consider({from, to, -1});  // a part keeps a unit
        if (first_[to + 1] - first_[to] > 1) consider({from, to, 1});
      }
    if (chosen) apply(*chosen);
    return chosen.has_value();
  }

  std::span<const int32_t> stage_of_;
  std::vector<double> up_to_ = {0};  // the cost of the first units
  std::vector<int32_t> first_;       // unit of each part; last, the number of units
  std::vector<double> of_stage_;     // costs; there are no more stages than parts
};

std::vector<int32_t> balanced_stages(const std::vector<ScopeRun>& units, std::span<const int32_t> stage_of) {
  const auto parts = static_cast<int32_t>(stage_of.size());
  const bool has_several = std::ranges::any_of(stage_of, [&](int32_t stage) { return std::ranges::count(stage_of, stage) > 1; });
  constexpr int32_t kMostParts = 128;  // the search takes the cube of their number
  return has_several && parts <= kMostParts ? StageBalance(units, stage_of).made() : balanced(units, parts);
}

std::vector<int32_t> given(const ScopeRuns& units, int32_t parts, std::string_view starts) {
  std::vector<int32_t> first = {0};
  for (size_t at = 0; at <= starts.size();) {
    const size_t comma = std::min(starts.find(',', at), starts.size());
    std::string_view name = starts.substr(at, comma - at);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    int32_t unit = first.back() + 1;
    const auto count = static_cast<int32_t>(units.all().size());
    while (unit < count && units.name(unit) != name) ++unit;
    check(unit < count, "pipeline: stage_starts has \"", name, "\", which is not an outermost scope after ", units.name(first.back()),
          "; the scopes are ", units.names());
    first.push_back(unit);
    at = comma + 1;
  }
  check(std::ssize(first) == parts, "pipeline: stage_starts names ", first.size() - 1, " scopes, but ", parts, " parts have ", parts - 1,
        " starts after the first one");
  return first;
}

std::vector<int32_t> given(const ScopeRuns& units, std::span<const RegionId> scopes) {
  std::vector<int32_t> first = {0};
  for (const RegionId scope : scopes) {
    const auto found = std::ranges::find(units.all(), scope, &ScopeRun::scope);
    require(found != units.all().end(), Code::internal, "pipeline: a scope with which a part begins computes nothing");
    first.push_back(static_cast<int32_t>(found - units.all().begin()));
  }
  return first;
}

}  // namespace

RegionId outermost_of(const Program& program, RegionId region) {
  RegionId outermost = 0;
  for (RegionId at = program.boundary_of(region); at > 0; at = program.boundary_of(program.regions[static_cast<size_t>(at)].parent))
    outermost = at;
  return outermost;
}

std::vector<RegionId> starts_of(const Program& program, std::span<const int32_t> part_of_node) {
  const Graph& graph = program.find(Phase::forward)->graph;
  std::vector<RegionId> starts;
  for (int32_t n = 0; n < graph.size(); ++n) {
    const RegionId scope = outermost_of(program, graph[n].region);
    const bool is_of_next = scope > 0 && !is_made_anywhere(graph[n]) && part_of_node[static_cast<size_t>(n)] == std::ssize(starts) + 1;
    if (is_of_next) starts.push_back(scope);
  }
  return starts;
}

std::vector<int32_t> parts_of_forward(const Program& program, std::span<const int32_t> stage_of, std::string_view starts,
                                      std::span<const RegionId> scopes) {
  const auto parts = static_cast<int32_t>(stage_of.size());
  const ScopeRuns units(program);
  const auto count = static_cast<int32_t>(units.all().size());
  check(count >= parts, "pipeline: the model has ", count, count == 1 ? " outermost scope" : " outermost scopes", " (", units.names(),
        "), too few for ", parts, " parts (stages x chunks of a stage); use fewer stages, or open more scopes with st_graph_scope");
  const std::vector<int32_t> first = !scopes.empty()  ? given(units, scopes)
                                     : starts.empty() ? balanced_stages(units.all(), stage_of)
                                                      : given(units, parts, starts);
  std::vector<int32_t> of_node;
  for (int32_t n = 0; n < program.find(Phase::forward)->graph.size(); ++n)
    of_node.push_back(static_cast<int32_t>(std::ranges::upper_bound(first, units.of_node(n)) - first.begin()) - 1);
  return of_node;
}

}  // namespace st

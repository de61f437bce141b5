#include "passes/recompute_choice.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "passes/recompute.h"
#include "passes/recompute_scopes.h"

namespace st {
namespace {

constexpr size_t kMostInnerScopes = 4;  // of which every set is looked at; of more each one and all
constexpr size_t kMostMeasured = 32;    // needs that are planned, and plans of whole choices
constexpr size_t kMostChoices = 128;    // that are all looked at
constexpr size_t kMostStates = 4096;    // of a knapsack: more than are met before the steps are finer than memory matters

/// One way to treat an outermost scope.
struct Way {
  std::vector<RegionId> scopes;
  int64_t saved = 0;  // bytes of stash
  OpCost cost;
  int64_t need = 0;  // activations and workspace when nothing else is recomputed
};

using Unit = std::vector<Way>;  // an outermost scope: all ways but that of keeping everything

struct Choice {
  std::vector<RegionId> scopes;
  int64_t saved = 0;
  double weight = 0;
};

/// The cheapest choice for each number of bytes saved that no cheaper one saves too.
class Knapsack {
 public:
  /// Ways that need more than `need` are left out.
  Knapsack(const std::vector<Unit>& units, int64_t need) : units_(units) {
    layers_.push_back({State{}});
    for (const Unit& unit : units) {
      std::vector<State> next;
      const auto& last = layers_.back();
      for (size_t s = 0; s < last.size(); ++s) {
        next.push_back({.saved = last[s].saved, .weight = last[s].weight, .before = s, .way = -1});
        for (size_t w = 0; w < unit.size(); ++w)
          if (unit[w].need <= need)
            next.push_back({.saved = last[s].saved + unit[w].saved,
                            .weight = last[s].weight + unit[w].cost.weight(),
                            .before = s,
                            .way = static_cast<int32_t>(w)});
      }
      layers_.push_back(thinned(std::move(next)));
    }
  }

  /// The cheapest that saves at least so much; nothing: none does.
  std::optional<Choice> saving(int64_t bytes) const {
    const auto& last = layers_.back();  // the more they save the more they cost
    const auto found = std::ranges::find_if(last, [&](const State& state) { return state.saved >= bytes; });
    if (found == last.end()) return std::nullopt;
    Choice choice{.scopes = {}, .saved = found->saved, .weight = found->weight};
    const State* state = &*found;
    for (size_t u = units_.size(); u > 0; --u) {
      if (state->way >= 0) {
        const auto& scopes = units_[u - 1][static_cast<size_t>(state->way)].scopes;
        choice.scopes.insert(choice.scopes.end(), scopes.begin(), scopes.end());
      }
      state = &layers_[u - 1][state->before];
    }
    std::ranges::sort(choice.scopes);
    return choice;
  }

  int64_t most() const { return layers_.back().back().saved; }

 private:
  struct State {
    int64_t saved = 0;
    double weight = 0;
    size_t before = 0;  // in the layer of the unit before
    int32_t way = -1;
  };

  static std::vector<State> thinned(std::vector<State> states) {
    std::ranges::stable_sort(states,
                             [](const State& a, const State& b) { return std::tie(a.weight, b.saved) < std::tie(b.weight, a.saved); });
    std::vector<State> kept;
    for (const State& state : states)
      if (kept.empty() || state.saved > kept.back().saved) kept.push_back(state);
    if (kept.size() <= kMostStates) return kept;
    std::vector<State> some;
    for (size_t i = 0; i < kMostStates; ++i) some.push_back(kept[i * (kept.size() - 1) / (kMostStates - 1)]);
    return some;
  }

  const std::vector<Unit>& units_;
  std::vector<std::vector<State>> layers_;  // after each unit
};

class Search {
 public:
  Search(const Program& program, int64_t budget, const PlannedActivations& planned, const PlannedActivations& planned_on_all,
         const StashBuffersOf& buffers)
      : program_(program), budget_(budget), planned_(planned), planned_on_all_(planned_on_all), is_on_one_stage_(!buffers) {
    for (const RegionId scope : outermost_scopes(program))
      if (const int64_t count = buffers ? buffers(scope) : 1; count > 0) {
        outer_.push_back(scope);
        buffers_.push_back(count);
      }
  }

  std::vector<RegionId> run() {
    const int64_t all_kept = plan({});
    if (all_kept <= budget_) return {};
    find_units();
    size_t choices = 1;
    for (const Unit& unit : units_) choices = std::min(kMostChoices + 1, choices * (unit.size() + 1));
    if (choices <= kMostChoices) return cheapest_of_all();
    for (Unit& unit : units_) std::erase_if(unit, [](const Way& way) { return way.saved <= 0; });
    const int64_t kept_need = all_kept - stash_;
    measure_needs(kept_need);
    std::set<int64_t> needs = {kept_need};
    for (const Unit& unit : units_)
      for (const Way& way : unit) needs.insert(std::max(kept_need, way.need));
    return cheapest(needs);
  }

 private:
  int64_t plan(std::span<const RegionId> scopes) {
    const int64_t bytes = planned_(scopes);
    if (bytes < least_) {
      least_ = bytes;
      least_scopes_.assign(scopes.begin(), scopes.end());
    }
    return bytes;
  }

  /// Measures what each scope saves and costs, some scopes of all units at a time: sibling scopes do not affect each other.
  void find_units() {
    std::map<RegionId, RecomputedScope> known;
    const auto look_at = [&](const std::vector<RegionId>& scopes) {
      Program copy = program_;
      const RecomputeRecord record = recompute(copy, scopes);
      stash_ = record.stash_before;
      for (const RecomputedScope& scope : record.scopes) known.emplace(scope.region, scope);
    };
    look_at(outer_);
    std::vector<std::vector<RegionId>> inner;
    size_t most = 0;
    for (const RegionId scope : outer_) most = std::max(most, inner.emplace_back(scopes_directly_in(program_, scope)).size());
    for (size_t i = 0; i < most; ++i) {
      std::vector<RegionId> side_by_side;
      for (const auto& scopes : inner)
        if (i < scopes.size()) side_by_side.push_back(scopes[i]);
      look_at(side_by_side);
    }

    for (size_t u = 0; u < outer_.size(); ++u) {
      Unit unit;
      const auto add = [&](const std::vector<RegionId>& scopes) {
        Way way{.scopes = scopes, .cost = {}};
        for (const RegionId scope : scopes) {
          const auto found = known.find(scope);
          if (found == known.end()) return;  // nothing of it runs again
          way.saved += found->second.stash_bytes * buffers_[u];
          way.cost += found->second.cost;
        }
        unit.push_back(std::move(way));
      };
      for (const auto& scopes : sets_of(inner[u])) add(scopes);
      add({outer_[u]});
      if (!unit.empty()) units_.push_back(std::move(unit));
    }
  }

  static std::vector<std::vector<RegionId>> sets_of(const std::vector<RegionId>& scopes) {
    std::vector<std::vector<RegionId>> sets;
    if (scopes.size() > kMostInnerScopes) {
      for (const RegionId scope : scopes) sets.push_back({scope});
      sets.push_back(scopes);
      return sets;
    }
    for (uint32_t members = 1; members < 1U << scopes.size(); ++members) {
      auto& set = sets.emplace_back();
      for (size_t i = 0; i < scopes.size(); ++i)
        if ((members >> i & 1) != 0) set.push_back(scopes[i]);
    }
    return sets;
  }

  std::vector<RegionId> cheapest_of_all() {
    std::vector<Choice> choices = {{}};
    for (const Unit& unit : units_) {
      const size_t before = choices.size();
      for (size_t c = 0; c < before; ++c)
        for (const Way& way : unit) {
          Choice choice = choices[c];
          choice.scopes.insert(choice.scopes.end(), way.scopes.begin(), way.scopes.end());
          choice.weight += way.cost.weight();
          choices.push_back(std::move(choice));
        }
    }
    std::ranges::stable_sort(choices, {}, &Choice::weight);
    for (const Choice& choice : choices)
      if (stash_with(choice.scopes) <= budget_ && plan(choice.scopes) <= budget_) return choice.scopes;
    least_ = std::numeric_limits<int64_t>::max();  // those that were skipped count, too, and the first of equal ones is named
    for (const Choice& choice : choices) plan(choice.scopes);
    refuse();
  }

  /// Bytes that a plan takes at least: the stash, all of which is there before the first is read. 0 in a pipeline: a stage has only a part
  /// of it, in several buffers.
  int64_t stash_with(std::span<const RegionId> scopes) const {
    if (!is_on_one_stage_) return 0;
    Program copy = program_;
    return recompute(copy, scopes).stash_after;
  }

  /// Blocks are mostly alike: of those that save and cost the same one is planned.
  void measure_needs(int64_t kept_need) {
    std::map<std::tuple<int64_t, double, double>, int64_t> known;
    int64_t largest = kept_need;
    for (Unit& unit : units_)
      for (Way& way : unit) {
        const auto [found, is_new] = known.try_emplace({way.saved, way.cost.flops, way.cost.bytes}, largest);
        if (is_new && known.size() <= kMostMeasured) found->second = plan(way.scopes) - (stash_ - way.saved);
        way.need = found->second;
        largest = std::max(largest, way.need);
      }
  }

  std::vector<RegionId> cheapest(const std::set<int64_t>& needs) {
    struct Candidate {
      size_t knapsack;
      Choice choice;
    };
    std::vector<Knapsack> knapsacks;
    std::vector<Candidate> candidates;
    const auto ask = [&](size_t knapsack, int64_t bytes) {
      if (auto choice = knapsacks[knapsack].saving(bytes)) candidates.push_back({knapsack, std::move(*choice)});
    };
    for (const int64_t need : needs) {
      knapsacks.emplace_back(units_, need);
      ask(knapsacks.size() - 1, stash_ + need - budget_);
    }
    for (size_t plans = 0; !candidates.empty() && plans < kMostMeasured; ++plans) {
      const auto best = std::ranges::min_element(candidates, {}, [](const Candidate& c) { return c.choice.weight; });
      const Candidate now = *best;
      candidates.erase(best);
      const int64_t bytes = plan(now.choice.scopes);
      if (bytes <= budget_) return now.choice.scopes;
      ask(now.knapsack, now.choice.saved + bytes - budget_);
    }
    for (const Knapsack& knapsack : knapsacks) {
      const Choice most = *knapsack.saving(knapsack.most());
      if (plan(most.scopes) <= budget_) return most.scopes;
    }
    if (plan(outer_) <= budget_) return outer_;
    refuse();
  }

  [[noreturn]] void refuse() const {
    Program copy = program_;
    const RecomputeRecord record = recompute(copy, least_scopes_);
    const int64_t least = std::max(least_, planned_on_all_(least_scopes_));
    fail(Code::out_of_memory,
         text("recompute: auto cannot fit ", text_of_bytes(budget_), " (", budget_, " bytes) of activations; the smallest is ",
              text_of_bytes(least), " (", least, " bytes), recomputing ", least_scopes_.size(), " scopes at a cost of ",
              record.cost().flops / 1e9, " GFLOP and ", text_of_bytes(static_cast<int64_t>(record.cost().bytes)),
              " of memory traffic per micro-batch. Raise recompute_budget to that, or use a smaller batch or context"));
  }

  const Program& program_;
  int64_t budget_;
  const PlannedActivations &planned_, &planned_on_all_;
  const bool is_on_one_stage_;
  std::vector<RegionId> outer_;   // outermost scopes of the planned rank
  std::vector<int64_t> buffers_;  // of their stash
  int64_t stash_ = 0;             // bytes when nothing is recomputed
  std::vector<Unit> units_;
  int64_t least_ = std::numeric_limits<int64_t>::max();
  std::vector<RegionId> least_scopes_;
};

}  // namespace

std::vector<RegionId> scopes_that_fit(const Program& program, int64_t budget, const PlannedActivations& planned,
                                      const PlannedActivations& planned_on_all, const StashBuffersOf& buffers) {
  return Search(program, budget, planned, planned_on_all, buffers).run();
}

}  // namespace st

#include "planner/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "planner/planned_stages.h"
#include "recipe/can_offload.h"
#include "recipe/kernel_needs_of.h"

namespace st {
namespace {

/// A single change that fits and makes the step no slower than this makes a combination unnecessary.
constexpr double kCheap = 0.1;

class Advisor {
 public:
  Advisor(const PlannedRun& run, const RankPlan& of, int32_t rank, double seconds, Workers& workers)
      : run_(run), rank_(rank), most_(run.device_memory_of_rank()), workers_(workers) {
    total_ = of.numbers.memory.device_total();
    seconds_of_row_ = seconds / rows_of(run.recipe);
  }

  std::vector<Fix> made() {
    std::vector<Fix> fixes;
    first_changes_ = changes_to_try(run_.recipe);
    first_ = all_tried(run_.recipe, first_changes_, {});
    for (const auto& fix : first_)
      if (fix && is_worth_it(*fix)) fixes.push_back(*fix);
    const auto one_fits = [&](double slower) {
      return std::ranges::any_of(fixes, [&](const Fix& fix) { return fix.fits && !fix.changes_results && fix.slower <= slower; });
    };
    if (total_ > most_ && !one_fits(kCheap)) {
      auto several = combination(false);
      if (!(several && several->fits)) several = one_fits(std::numeric_limits<double>::infinity()) ? std::nullopt : combination(true);
      if (several) fixes.push_back(std::move(*several));
    }
    mark_nearest(fixes);
    std::ranges::stable_sort(fixes, [](const Fix& a, const Fix& b) {
      const auto order = [](const Fix& of) { return std::tuple(!of.fits, !of.is_nearest, of.changes_results, of.slower); };
      return order(a) < order(b);
    });
    return fixes;
  }

 private:
  static void mark_nearest(std::vector<Fix>& fixes) {
    const auto nearest = std::ranges::min_element(fixes, {}, [](const Fix& of) { return std::pair(of.changes_results, of.device_total); });
    const bool one_fits = std::ranges::any_of(fixes, [](const Fix& of) { return of.fits && !of.changes_results; });
    if (nearest != fixes.end() && !one_fits && !nearest->fits) nearest->is_nearest = true;
  }

  static double rows_of(const Recipe& recipe) {
    return static_cast<double>(recipe.batch) * static_cast<double>(recipe.step_micro_batches());
  }

  /// A plan that does not fit must become smaller; one that fits smaller or faster, and stay within the memory.
  bool is_worth_it(const Fix& fix) const {
    if (total_ > most_) return fix.saved > 0;
    return fix.fits && (fix.saved > total_ / 50 || fix.slower < -0.01);
  }

  /// Whether a trainer runs what the recipe offloads. A recipe that is given may be of another trainer, and keeps its offload.
  bool can_run(const Recipe& recipe) const { return can_offload(recipe, kernel_needs(run_.machine.profile).has_own_memory); }

  /// Each change of `from`, several at a time.
  std::vector<std::optional<Fix>> all_tried(const Recipe& from, const std::vector<KeyChanges>& all, const KeyChanges& before) const {
    std::vector<std::optional<Fix>> fixes(all.size());
    workers_.run(std::ssize(all), [&](int64_t i) {
      const auto each = static_cast<size_t>(i);
      fixes[each] = tried(from, all[each], before);
    });
    return fixes;
  }

  /// Nothing: the recipe does not allow it for this model, or a trainer does not run it.
  std::optional<Fix> tried(const Recipe& from, const KeyChanges& changes, const KeyChanges& before) const {
    Workers alone(1);  // several fixes are tried at a time
    PlannedRun other = run_;
    other.recipe = from;
    Fix fix;
    try {
      for (const KeyChange& of : changes) other.recipe.set(of.key, of.value);
      if (!can_run(other.recipe) && (can_run(run_.recipe) || other.recipe.offload != run_.recipe.offload)) return std::nullopt;
      BegunPlans begun;
      const RankPlan plan = plan_of_rank(other, rank_, &begun);
      fix.device_total = plan.numbers.memory.device_total();
      fix.step_seconds = step_seconds(other, plan, rank_, begun, alone);
    } catch (const Error& error) {
      if (is_of_recipe(error)) return std::nullopt;
      throw;
    }
    fix.changes = before;
    add_changes(fix.changes, changes);
    fix.saved = total_ - fix.device_total;
    fix.slower = seconds_of_row_ > 0 ? fix.step_seconds / rows_of(other.recipe) / seconds_of_row_ - 1 : 0;
    fix.changes_results = changes_numbers(changes) || rows_of(other.recipe) != rows_of(run_.recipe);
    fix.missing = std::max<int64_t>(0, fix.device_total - most_);
    fix.fits = fix.missing == 0;
    return fix;
  }

  static bool may_combine(const KeyChanges& changes, bool offloads) {
    return !changes_numbers(changes) && (offloads || changes.front().key != "offload");
  }

  /// Each change that a combination may add to `recipe`, which `best` has led to. The first ones are planned already.
  std::vector<std::optional<Fix>> next_tried(const Recipe& recipe, const std::optional<Fix>& best, bool offloads) const {
    if (best) {
      std::vector<KeyChanges> all = changes_to_try(recipe);
      std::erase_if(all, [&](const KeyChanges& of) { return !may_combine(of, offloads); });
      return all_tried(recipe, all, best->changes);
    }
    std::vector<std::optional<Fix>> fixes;
    for (size_t i = 0; i < first_.size(); ++i)
      if (may_combine(first_changes_[i], offloads)) fixes.push_back(first_[i]);
    return fixes;
  }

  /// Adds the change that saves most memory, until it fits or nothing saves more; with `offloads`, values are moved to the host too.
  std::optional<Fix> combination(bool offloads) const {
    Recipe recipe = run_.recipe;
    std::optional<Fix> best;
    for (int changes = 0; changes < 12 && !(best && best->fits); ++changes) {
      std::optional<Fix> next;
      for (auto& fix : next_tried(recipe, best, offloads)) {
        if (!fix || fix->changes_results) continue;
        const bool is_better = !next || (fix->fits != next->fits ? fix->fits
                                         : fix->fits             ? fix->step_seconds < next->step_seconds
                                                                 : fix->device_total < next->device_total);
        if (is_better) next = std::move(fix);
      }
      if (!next || (best && next->device_total >= best->device_total)) break;
      for (const KeyChange& of : next->changes) recipe.set(of.key, of.value);
      best = std::move(next);
    }
    return best && best->changes.size() > 1 ? best : std::nullopt;
  }

  const PlannedRun& run_;
  const int32_t rank_;
  const int64_t most_;
  Workers& workers_;
  std::vector<KeyChanges> first_changes_;  // of the recipe as it is
  std::vector<std::optional<Fix>> first_;
  int64_t total_ = 0;
  double seconds_of_row_ = 0;
};

/// "1.2 GB", "1.2 MB"; with a sign if `format` has one.
std::string size_text(const char* format, double bytes) {
  const bool is_small = std::abs(bytes) < 1e9;
  std::array<char, 96> out{};
  std::snprintf(out.data(), out.size(), format, bytes / (is_small ? 1e6 : 1e9), is_small ? "MB" : "GB");
  return out.data();
}

}  // namespace

std::string Fix::text() const {
  std::string out = text_of(changes);
  constexpr int64_t kLeast = 50'000;  // bytes of which a tenth of a MB is
  const std::string memory = std::abs(saved) < kLeast ? "the same memory" : size_text("%+.1f %s", -static_cast<double>(saved));
  std::array<char, 96> time{}, speed{};
  std::snprintf(time.data(), time.size(), ", %+.0f %% time", std::round(100 * slower) + 0.0);
  if (speedup > 0) std::snprintf(speed.data(), speed.size(), ", %.2f times the speed of one rank", speedup);
  out += ": " + memory + time.data() + speed.data() + (changes_results ? " (another training result)" : "");
  if (!is_nearest) return out;
  const std::string more = missing < kLeast ? text_of_bytes(missing) : size_text("%.1f %s", static_cast<double>(missing));
  return out + "; does not fit but comes nearest, " + more + " too much";
}

std::vector<Fix> fixes_for(const PlannedRun& run, const RankPlan& of, int32_t rank, double seconds, Workers& workers) {
  return Advisor(run, of, rank, seconds, workers).made();
}

}  // namespace st

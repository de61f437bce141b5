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

/// Recompute policies, from the one that repeats least.
constexpr std::string_view kRecompute[] = {"\"none\"", "\"attention\"", "\"blocks\"", "\"full\""};

/// Keys that change what a step computes.
constexpr std::string_view kNumericKeys[] = {"precision", "residual_dtype", "gradient_dtype", "accumulate_dtype", "optimizer"};

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
    first_changes_ = candidates(run_.recipe);
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

  using Changes = std::vector<KeyChange>;

  static double rows_of(const Recipe& recipe) {
    return static_cast<double>(recipe.batch) * static_cast<double>(recipe.step_micro_batches());
  }

  /// A plan that does not fit must become smaller; one that fits smaller or faster, and stay within the memory.
  bool is_worth_it(const Fix& fix) const {
    if (total_ > most_) return fix.saved > 0;
    return fix.fits && (fix.saved > total_ / 50 || fix.slower < -0.01);
  }

  static bool changes_numbers(const Changes& changes) {
    return std::ranges::any_of(changes,
                               [](const KeyChange& of) { return std::ranges::find(kNumericKeys, of.key) != std::end(kNumericKeys); });
  }

  static KeyChange change(const Recipe& recipe, const std::string& key, std::string value) {
    return {key, std::move(value), recipe.get(key)};
  }

  std::vector<Changes> candidates(const Recipe& recipe) const {
    std::vector<Changes> all;
    const auto one = [&](const char* key, const std::string& value) { all.push_back({change(recipe, key, value)}); };
    const auto number = [](int64_t value) { return std::to_string(value); };
    const auto* const stands = std::ranges::find(kRecompute, recipe.get("recompute"));
    if (stands != std::end(kRecompute))
      for (const auto* policy = stands + 1; policy != std::end(kRecompute); ++policy) one("recompute", std::string(*policy));
    const int64_t data = recipe.data_ranks();
    if (data > 1)
      for (int64_t zero = recipe.zero + 1; zero <= 3; ++zero) one("zero", number(zero));
    if (recipe.batch > 1 && recipe.batch % 2 == 0) {
      Changes halved = {change(recipe, "batch", number(recipe.batch / 2))};
      if (recipe.micro_batches > 0)
        halved.push_back(change(recipe, "micro_batches", number(recipe.micro_batches * 2)));
      else
        halved.push_back(change(recipe, "accumulate", number(recipe.accumulate * 2)));
      all.push_back(std::move(halved));
    }
    if (recipe.offload == "none") one("offload", "\"optimizer\"");
    if (recipe.offload != "parameters" && recipe.offload != "gradients" && recipe.zero == 0) one("offload", "\"parameters\"");
    if (recipe.offload != "gradients") one("offload", "\"gradients\"");
    if (data % 2 == 0) {
      const auto twice = [&](const char* key, int64_t value) {
        Changes made = {change(recipe, key, number(value * 2))};
        if (recipe.micro_batches == 0) made.push_back(change(recipe, "accumulate", number(recipe.accumulate * 2)));
        all.push_back(std::move(made));
      };
      twice("tensor", recipe.tensor);
      if (!is_schedule_table(recipe.schedule)) twice("stages", recipe.stages);
    }
    if (data > 1 && recipe.reduce == "micro" && recipe.step_rounds() > 1) one("reduce", "\"step\"");
    if (data > 1 && recipe.gradient_dtype == "fp32") one("gradient_dtype", "\"bf16\"");
    if (recipe.gradient_dtype != "fp32" && recipe.accumulate_dtype == "fp32") one("accumulate_dtype", recipe.get("gradient_dtype"));
    if (data > 1)
      all.push_back({change(recipe, recipe.micro_batches > 0 ? "micro_batches" : "accumulate",
                            number(4 * (recipe.micro_batches > 0 ? recipe.micro_batches : recipe.accumulate)))});
    if (recipe.precision == "fp32")
      one("precision", "\"bf16\"");
    else if (recipe.residual_dtype == "fp32")
      one("residual_dtype", recipe.get("precision"));
    if (recipe.optimizer == "adamw" || recipe.optimizer == "adam") one("optimizer", "\"adamw-8bit\"");
    return all;
  }

  /// Whether a trainer runs what the recipe offloads. A recipe that is given may be of another trainer, and keeps its offload.
  bool can_run(const Recipe& recipe) const { return can_offload(recipe, kernel_needs(run_.machine.profile).has_own_memory); }

  /// Each change of `from`, several at a time.
  std::vector<std::optional<Fix>> all_tried(const Recipe& from, const std::vector<Changes>& all, const Changes& before) const {
    std::vector<std::optional<Fix>> fixes(all.size());
    workers_.run(std::ssize(all), [&](int64_t i) {
      const auto each = static_cast<size_t>(i);
      fixes[each] = tried(from, all[each], before);
    });
    return fixes;
  }

  /// Nothing: the recipe does not allow it for this model, or a trainer does not run it.
  std::optional<Fix> tried(const Recipe& from, const Changes& changes, Changes before) const {
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
      if (error.code() == Code::invalid_argument || error.code() == Code::unsupported) return std::nullopt;
      throw;
    }
    fix.changes = std::move(before);
    fix.changes.insert(fix.changes.end(), changes.begin(), changes.end());
    fix.saved = total_ - fix.device_total;
    fix.slower = seconds_of_row_ > 0 ? fix.step_seconds / rows_of(other.recipe) / seconds_of_row_ - 1 : 0;
    fix.changes_results = changes_numbers(changes) || rows_of(other.recipe) != rows_of(run_.recipe);
    fix.missing = std::max<int64_t>(0, fix.device_total - most_);
    fix.fits = fix.missing == 0;
    return fix;
  }

  static bool may_combine(const Changes& changes, bool offloads) {
    return !changes_numbers(changes) && (offloads || changes.front().key != "offload");
  }

  /// Each change that a combination may add to `recipe`, which `best` has led to. The first ones are planned already.
  std::vector<std::optional<Fix>> next_tried(const Recipe& recipe, const std::optional<Fix>& best, bool offloads) const {
    if (best) {
      std::vector<Changes> all = candidates(recipe);
      std::erase_if(all, [&](const Changes& of) { return !may_combine(of, offloads); });
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
    if (best) merge(best->changes);
    return best && best->changes.size() > 1 ? best : std::nullopt;
  }

  /// A key that was changed twice has its last value.
  static void merge(Changes& changes) {
    Changes merged;
    for (KeyChange& of : changes) {
      const auto found = std::ranges::find(merged, of.key, &KeyChange::key);
      if (found == merged.end())
        merged.push_back(std::move(of));
      else
        found->value = of.value;
    }
    changes = std::move(merged);
  }

  const PlannedRun& run_;
  const int32_t rank_;
  const int64_t most_;
  Workers& workers_;
  std::vector<Changes> first_changes_;  // of the recipe as it is
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

std::string plain(const std::string& json) { return json.size() > 1 && json.front() == '"' ? json.substr(1, json.size() - 2) : json; }

}  // namespace

std::string Fix::text() const {
  std::string out;
  for (const KeyChange& change : changes) {
    const bool is_number = !change.value.empty() && change.value.front() != '"';
    out += (out.empty() ? "" : ", ") + change.key + " " + (is_number ? plain(change.before) + " -> " : "") + plain(change.value);
  }
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

#include "planner/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/plain_locale.h"

namespace st {
namespace {

constexpr std::string_view kKeys[] = {"stages",     "tensor",        "schedule",  "zero",   "batch",
                                      "accumulate", "micro_batches", "recompute", "offload"};

constexpr double kHopeless = 1.1;                // a split that is so much slower than the fastest is not looked at further
constexpr int64_t kFewParameters = 300'000'000;  // with more, ZeRO-2 saves more time in the update than its smaller messages cost
constexpr double kSlow = 1.2;                    // one that no schedule makes the fastest

struct Split {
  int64_t stages, tensor, zero;
};

constexpr std::array<const char*, 3> kPolicies = {"none", "attention", "blocks"};  // of recompute, from the one that repeats least

/// What a policy takes with a micro-batch of so many rows: the part that grows with the rows tells what smaller ones take, nearly.
struct Taken {
  int64_t batch = 0, device_total = 0, by_rows = 0;  // batch 0: not planned yet
  double with(int64_t rows) const {
    return static_cast<double>(device_total - by_rows) +
           static_cast<double>(by_rows) * static_cast<double>(rows) / static_cast<double>(batch);
  }
};

class Search {
 public:
  explicit Search(const PlannedRun& run) : run_(run), most_(run.device_memory_of_rank()) {
    rows_ = run.recipe.batch * run.recipe.step_micro_batches();
    int64_t parameters = 0;
    for (const Slot& slot : run.model.slots) parameters += slot.role == Role::parameter ? slot.type.shape.elements() : 0;
    is_small_ = parameters < kFewParameters;
  }

  SearchResult made() {
    std::optional<Candidate> before;  // of the same stages and tensor degree, with more shards
    Split last{0, 0, 0};
    for (const Split& split : splits()) {
      const bool is_like_last = split.stages == last.stages && split.tensor == last.tensor;
      last = split;
      if (is_like_last && before && (!before->fits || before->step_seconds > kHopeless * fastest_)) continue;
      if (least_seconds(split) > kHopeless * fastest_) continue;
      std::optional<Candidate> best = best_of(split);
      before = best;
      if (!best) continue;
      if (best->fits) fastest_ = std::min(fastest_, best->step_seconds);
      found_.push_back(std::move(*best));
    }
    if (std::ranges::none_of(found_, &Candidate::fits)) offload();
    sort();
    for (int looked_at = 0; looked_at < 4 && !found_.empty() && found_.front().fits && look_at_all_stages(found_.front()); ++looked_at)
      sort();
    if (!found_.empty() && found_.front().fits) std::erase_if(found_, [](const Candidate& of) { return !of.fits; });
    SearchResult result{.best = std::move(found_), .planned = planned_};
    return result;
  }

 private:
  void sort() {
    std::ranges::stable_sort(found_, [](const Candidate& a, const Candidate& b) {
      if (a.fits != b.fits) return a.fits;
      return a.fits ? a.step_seconds < b.step_seconds : a.device_total < b.device_total;
    });
  }

  /// Whether the stages in between took more memory or time than the first and the last.
  bool look_at_all_stages(Candidate& of) {
    const Candidate before = of;
    PlannedRun other = run_;
    other.recipe = of.recipe;
    for (int32_t stage = 1; stage + 1 < other.mesh().stage; ++stage) take_stage(other, stage, of);
    of.fits = of.device_total <= most_;
    return of.device_total != before.device_total || of.step_seconds != before.step_seconds;
  }

  /// Returns the bytes that grow with the rows of a micro-batch.
  int64_t take_stage(const PlannedRun& run, int32_t stage, Candidate& of) {
    const RankPlan plan = plan_of_rank(run, rank_at(run.mesh(), {.data = 0, .tensor = 0, .stage = stage}), true);
    ++planned_;
    of.device_total = std::max(of.device_total, plan.numbers.memory.device_total());
    of.step_seconds = std::max(of.step_seconds, plan.step_seconds(run.recipe));
    if (computing_ == 0 && run.recipe.stages == 1) computing_ = plan.trace.seconds_of(TraceEvent::Kind::compute);
    return plan.plan.memory.of(Arena::activations) + plan.plan.memory.of(Arena::stash) + plan.plan.memory.of(Arena::workspace);
  }

  /// Little exchange first: pure data ranks with ZeRO, then tensor ranks within a node, then stages.
  std::vector<Split> splits() const {
    std::vector<Split> all;
    const int64_t ranks = run_.recipe.ranks;
    for (int64_t stages = 1; stages <= std::min<int64_t>(ranks, 64); stages *= 2)
      for (int64_t tensor = 1; tensor <= run_.machine.ranks_per_node && stages * tensor <= ranks; tensor *= 2) {
        if (ranks % (stages * tensor) != 0) continue;
        const int64_t data = ranks / (stages * tensor);
        if (data == 1) {
          all.push_back({stages, tensor, 0});
          continue;
        }
        for (const int64_t zero : {3, 2}) all.push_back({stages, tensor, zero});
        if (is_small_) all.push_back({stages, tensor, 0});
      }
    std::ranges::stable_sort(all, {}, [](const Split& of) { return of.stages * of.tensor; });
    return all;
  }

  /// The schedule's bubble with as many micro-batches as there are rows, on top of computing.
  double least_seconds(const Split& split) const {
    const double own = static_cast<double>(rows_ * split.stages * split.tensor) / static_cast<double>(run_.recipe.ranks);
    return computing_ * (own + static_cast<double>(split.stages) - 1) / own;
  }

  /// Micro-batches of a data rank, largest rows first.
  std::vector<int64_t> batches(int64_t data, int64_t stages) const {
    std::vector<int64_t> all;
    if (rows_ % data != 0) return all;
    const int64_t own = rows_ / data;
    for (int64_t batch = own; batch >= 1; --batch)
      if (own % batch == 0 && (batch & (batch - 1)) == 0 && (stages == 1 || own / batch >= stages)) all.push_back(batch);
    if (all.empty() && stages > 1) all.push_back(1);
    return all;
  }

  std::optional<Candidate> best_of(const Split& split) {
    const int64_t data = run_.recipe.ranks / (split.stages * split.tensor);
    std::optional<Candidate> best;
    taken_ = {};
    const std::vector<int64_t> rows = batches(data, split.stages);
    for (const int64_t batch : rows) {
      Recipe recipe = run_.recipe;
      recipe.stages = split.stages;
      recipe.tensor = split.tensor;
      recipe.zero = split.zero;
      recipe.batch = batch;
      recipe.global_batch = 0;
      recipe.micro_batches = 0;
      recipe.accumulate = rows_ / (batch * data);
      if (split.stages == 1 && is_schedule_table(recipe.schedule)) recipe.schedule = "1f1b";
      std::optional<Candidate> fit = least_recompute(recipe, batch == rows.back() && !best);
      if (!fit) continue;
      const bool is_better =
          !best || std::tuple(!fit->fits, fit->fits ? fit->step_seconds : static_cast<double>(fit->device_total)) <
                       std::tuple(!best->fits, best->fits ? best->step_seconds : static_cast<double>(best->device_total));
      if (is_better)
        best = std::move(fit);
      else if (best->fits)
        break;  // smaller micro-batches only lose
      if (best->fits && best->recipe.recompute == "none") break;
    }
    if (best) try_schedules(*best);
    return best;
  }

  /// Other schedules have smaller bubbles, and keep more.
  void try_schedules(Candidate& best) {
    if (best.recipe.stages == 1 || !best.fits || is_schedule_table(best.recipe.schedule) || best.step_seconds > kSlow * fastest_) return;
    for (const char* schedule : {"interleaved", "zb-v"}) {
      Recipe recipe = best.recipe;
      recipe.schedule = schedule;
      std::optional<Candidate> other = planned(recipe);
      if (other && other->fits && other->step_seconds < best.step_seconds) best = std::move(*other);
    }
  }

  /// The slowest way to save memory: only where nothing else fits, of the splits that come nearest.
  void offload() {
    std::ranges::stable_sort(found_, {}, &Candidate::device_total);
    for (size_t i = 0, tried = std::min<size_t>(found_.size(), 3); i < tried; ++i)
      for (const char* what : {"optimizer", "parameters"}) {
        Recipe recipe = found_[i].recipe;
        recipe.offload = what;
        if (std::optional<Candidate> made = planned(recipe)) found_.push_back(std::move(*made));
      }
  }

  /// With the policy that repeats least of those that fit. Leaves out what larger micro-batches have shown not to fit, unless `any` is
  /// asked.
  std::optional<Candidate> least_recompute(Recipe recipe, bool any) {
    std::optional<Candidate> last;
    for (size_t policy = 0; policy < kPolicies.size(); ++policy) {
      const Taken& larger = taken_[policy];
      const bool is_last_chance = any && policy + 1 == kPolicies.size() && !last;
      if (larger.batch > 0 && larger.with(recipe.batch) > 1.05 * static_cast<double>(most_) && !is_last_chance) continue;
      recipe.recompute = kPolicies[policy];
      std::optional<Candidate> made = planned(recipe, &taken_[policy]);
      if (!made) return last;
      if (last && made->device_total >= last->device_total) continue;
      last = std::move(made);
      if (last->fits || last->step_seconds > fastest_) return last;
      if (last->device_total > 4 * most_) return last;  // activations are not all that is too much
    }
    return last;
  }

  std::optional<Candidate> planned(const Recipe& recipe, Taken* taken = nullptr) {
    PlannedRun other = run_;
    other.recipe = recipe;
    Candidate made{.recipe = recipe, .changes = {}};
    try {
      const int32_t last = other.mesh().stage - 1;
      const int64_t by_rows = take_stage(other, 0, made);
      if (taken != nullptr) *taken = {recipe.batch, made.device_total, by_rows};
      if (last > 0 && made.device_total <= most_) take_stage(other, last, made);
    } catch (const Error& error) {
      if (error.code() == Code::invalid_argument || error.code() == Code::unsupported) return std::nullopt;
      throw;
    }
    made.fits = made.device_total <= most_;
    for (const std::string_view key : kKeys)
      if (recipe.get(key) != run_.recipe.get(key)) made.changes.push_back({std::string(key), recipe.get(key), run_.recipe.get(key)});
    return made;
  }

  const PlannedRun& run_;
  const int64_t most_;
  int64_t rows_ = 0, planned_ = 0;
  bool is_small_ = false;
  double fastest_ = HUGE_VAL;
  double computing_ = 0;                         // seconds a step, without recomputation, on ranks that share it evenly
  std::array<Taken, kPolicies.size()> taken_{};  // of the split at hand
  std::vector<Candidate> found_;
};

std::string settings(const Recipe& recipe) {
  return text(recipe.data_ranks(), " data x ", recipe.tensor, " tensor x ", recipe.stages, " stages, zero ", recipe.zero, ", batch ",
              recipe.batch, " x ", recipe.accumulate, ", recompute ", recipe.recompute, recipe.stages > 1 ? ", " + recipe.schedule : "",
              recipe.offload == "none" ? "" : ", offload " + recipe.offload);
}

}  // namespace

std::string SearchResult::text(const PlannedRun& run) const {
  const PlainLocale locale;
  std::string out;
  const double tokens = run.tokens_per_step();
  for (const Candidate& of : best) {
    std::array<char, 160> numbers{};
    std::snprintf(numbers.data(), numbers.size(), "  %9.1f GB %10.3f s a step %12.0f tokens/s  ",
                  static_cast<double>(of.device_total) / 1e9, of.step_seconds, tokens / of.step_seconds);
    out += numbers.data() + settings(of.recipe) + "\n";
  }
  return out;
}

SearchResult search(const PlannedRun& run) { return Search(run).made(); }

}  // namespace st

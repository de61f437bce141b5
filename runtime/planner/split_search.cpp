#include "planner/split_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "plan/pipeline_schedule.h"

namespace st {
namespace {

constexpr double kHopeless = 1.1;                // a split that is so much slower than the fastest is not looked at further
constexpr int64_t kFewParameters = 300'000'000;  // with more, ZeRO-2 saves more time in the update than its smaller messages cost
constexpr int64_t kMostBetween = 6;              // plans of micro-batches near the best one

/// Schedules with smaller bubbles than 1F1B, the smallest first: where it is faster than the others can be, they are not planned.
constexpr std::array<const char*, 3> kSchedules = {"zb-v", "interleaved", "zb-h1"};

constexpr std::array<const char*, 3> kPolicies = {"none", "attention", "blocks"};  // of recompute, from the one that repeats least

/// The memory of a policy at one size of micro-batch. That of smaller ones follows, nearly, from the part that grows with the rows.
struct Taken {
  int64_t batch = 0, device_total = 0, by_rows = 0;  // batch 0: not planned yet
  double with(int64_t rows) const {
    return static_cast<double>(device_total - by_rows) +
           static_cast<double>(by_rows) * static_cast<double>(rows) / static_cast<double>(batch);
  }
};

/// The bubble of a schedule, if gradients of weights take as long as forward; more than any step: there is none for so many micro-batches.
double expected_bubble(const Recipe& recipe, const PassSeconds& of_step) {
  try {
    const PipelineSchedule schedule = schedule_of(recipe);
    const auto count = static_cast<double>(schedule.micro_batches);
    const double weights = std::min(of_step.forward, of_step.backward / 2);
    const StageTimes times{of_step.forward / count, (of_step.backward - weights) / count, weights / count};
    return bubble(schedule, times) * makespan(schedule, times);
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument) throw;
    return HUGE_VAL;
  }
}

bool is_small(const Program& model) {
  int64_t parameters = 0;
  for (const Slot& slot : model.slots) parameters += slot.role == Role::parameter ? slot.type.shape.elements() : 0;
  return parameters < kFewParameters;
}

class SplitSearch {
 public:
  SplitSearch(const PlannedRun& run, const RankSplit& split, SearchBounds bounds)
      : run_(run),
        split_(split),
        bounds_(bounds),
        most_(run.device_memory_of_rank()),
        rows_(run.recipe.batch * run.recipe.step_micro_batches()),
        data_(run.recipe.ranks / (split.stages * split.tensor)) {}

  SplitResult made() {
    if (is_hopeless(bounds_.computing + least_bubble_of_all(bounds_.passes))) return result_;
    for (const int64_t zero : zero_stages()) {
      std::optional<Candidate> best = best_of(zero);
      const bool is_last = !best || !best->fits || is_hopeless(least_seconds_of(*best));  // fewer shards take more memory
      if (best) most_rows_ = best->recipe.batch;
      if (best) {
        if (best->fits) bounds_.fastest = std::min(bounds_.fastest, best->step_seconds);
        result_.best.push_back(std::move(*best));
      }
      if (is_last) break;
    }
    return result_;
  }

 private:
  std::vector<int64_t> zero_stages() const {
    if (data_ == 1) return {0};
    return is_small(run_.model) ? std::vector<int64_t>{3, 2, 0} : std::vector<int64_t>{3, 2};
  }

  /// The bubble of the schedule that leaves least, in micro-batches of one row.
  double least_bubble_of_all(const PassSeconds& passes) const {
    const double rows = static_cast<double>(rows_) / static_cast<double>(data_);
    double least = least_bubble(run_.recipe, split_.stages, passes, rows);
    Recipe recipe = run_.recipe;
    for (const char* schedule : kSchedules) {
      if (is_schedule_table(run_.recipe.schedule)) break;
      recipe.schedule = schedule;
      least = std::min(least, least_bubble(recipe, split_.stages, passes, rows));
    }
    return least;
  }

  /// Sizes of a data rank's micro-batches, largest first; none larger than the best with more shards, since fewer shards leave less memory.
  std::vector<int64_t> batches() {
    std::vector<int64_t> all;
    if (rows_ % data_ != 0) return all;
    const int64_t own = rows_ / data_;
    if (most_rows_ == 0) most_rows_ = own;
    const auto add = [&](int64_t batch) {
      if ((split_.stages == 1 || own / batch >= split_.stages) && batch <= most_rows_) all.push_back(batch);
    };
    for (int64_t divisor = 1; divisor <= own / divisor; ++divisor) {
      if (own % divisor != 0) continue;
      add(divisor);
      if (divisor != own / divisor) add(own / divisor);
    }
    std::ranges::sort(all, std::ranges::greater());
    if (all.empty() && split_.stages > 1) all.push_back(1);
    return all;
  }

  std::optional<Candidate> best_of(int64_t zero) {
    taken_ = {};
    const std::vector<int64_t> all = batches();
    std::vector<int64_t> tried;  // each at most half the one before
    std::optional<Candidate> best;
    for (const int64_t batch : all) {
      if (!tried.empty() && 2 * batch > tried.back()) continue;
      tried.push_back(batch);
      const bool is_better = improves(best, zero, batch, batch == all.back() && !best);
      if (!best || !best->fits) continue;
      if (!is_better) policies_ = policy_of(*best);  // smaller micro-batches only lose, unless they repeat less
      if (policies_ == 0 || is_settled(*best)) break;
    }
    policies_ = kPolicies.size();
    if (!best) return best;
    if (best->fits && (policy_of(*best) > 0 || !is_hopeless(least_seconds_of(*best)))) try_between(*best, zero, all, tried);
    try_schedules(*best);
    return best;
  }

  static size_t policy_of(const Candidate& of) {
    const auto is_its = [&](const char* policy) { return of.recipe.recompute == policy; };
    return static_cast<size_t>(std::ranges::find_if(kPolicies, is_its) - kPolicies.begin());
  }

  /// Smaller micro-batches have no smaller bubble, and save no recomputation.
  bool is_settled(const Candidate& of) const {
    return of.fits && of.recipe.recompute == "none" && (split_.stages == 1 || is_hopeless(least_seconds_of(of)));
  }

  /// With another schedule, ZeRO stage and size of micro-batches that repeats as much.
  double least_seconds_of(const Candidate& of) const {
    const double busy = of.step_seconds - of.shares.bubble - of.shares.exchange[static_cast<size_t>(MeshAxis::data)];
    return busy + least_bubble_of_all(of.passes);
  }

  bool is_hopeless(double seconds) const { return seconds > kHopeless * bounds_.fastest; }

  /// Tries the sizes between the best micro-batch and its neighbours among those that were tried, largest first.
  void try_between(Candidate& best, int64_t zero, const std::vector<int64_t>& all, const std::vector<int64_t>& tried) {
    const auto at = std::ranges::find(tried, best.recipe.batch);
    const int64_t most = at == tried.begin() ? *at : *(at - 1), least = at + 1 == tried.end() ? *at : *(at + 1);
    const int64_t before = result_.planned;
    std::optional<Candidate> made = std::move(best);
    for (const int64_t batch : all)
      if (batch < most && batch > least && batch != *at && result_.planned - before < kMostBetween) improves(made, zero, batch, false);
    best = std::move(*made);
  }

  /// Whether a micro-batch is better than the best one, which it replaces.
  bool improves(std::optional<Candidate>& best, int64_t zero, int64_t batch, bool any) {
    std::optional<Candidate> made = least_recompute(recipe_of(zero, batch), any);
    if (!made) return false;
    const auto order = [](const Candidate& of) {
      return std::tuple(!of.fits, of.fits ? of.step_seconds : static_cast<double>(of.device_total));
    };
    if (best && order(*made) >= order(*best)) return false;
    best = std::move(made);
    return true;
  }

  Recipe recipe_of(int64_t zero, int64_t batch) const {
    Recipe recipe = run_.recipe;
    recipe.stages = split_.stages;
    recipe.tensor = split_.tensor;
    recipe.zero = zero;
    recipe.batch = batch;
    recipe.global_batch = 0;
    recipe.micro_batches = 0;
    recipe.accumulate = rows_ / (batch * data_);
    if (split_.stages == 1 && is_schedule_table(recipe.schedule)) recipe.schedule = "1f1b";
    return recipe;
  }

  /// Other schedules have smaller bubbles, and keep more: in the order of their expected times, the first that fits and is faster.
  void try_schedules(Candidate& best) {
    if (split_.stages == 1 || !best.fits || is_schedule_table(best.recipe.schedule)) return;
    const double busy = best.step_seconds - best.shares.bubble;
    std::vector<std::pair<double, Recipe>> all;
    for (const char* schedule : kSchedules) {
      Recipe recipe = best.recipe;
      recipe.schedule = schedule;
      const double least = busy + least_bubble(recipe, split_.stages, best.passes, static_cast<double>(recipe.step_rounds()));
      if (least < best.step_seconds && !is_hopeless(least))
        all.emplace_back(busy + expected_bubble(recipe, best.passes), std::move(recipe));
    }
    std::ranges::stable_sort(all, {}, [](const auto& of) { return of.first; });
    for (const auto& [expected, recipe] : all) {
      if (expected > kHopeless * best.step_seconds) return;
      std::optional<Candidate> other = planned(recipe);
      if (!other || !other->fits || other->step_seconds >= best.step_seconds) continue;
      best = std::move(*other);
      return;
    }
  }

  /// With the policy that repeats least of those that fit. Leaves out what larger micro-batches have shown not to fit, unless `any` is
  /// asked.
  std::optional<Candidate> least_recompute(Recipe recipe, bool any) {
    std::optional<Candidate> last;
    for (size_t policy = 0; policy < policies_; ++policy) {
      const Taken& larger = taken_[policy];
      const bool is_last_chance = any && policy + 1 == kPolicies.size() && !last;
      if (larger.batch > 0 && larger.with(recipe.batch) > 1.05 * static_cast<double>(most_) && !is_last_chance) continue;
      recipe.recompute = kPolicies[policy];
      std::optional<Candidate> made = planned(recipe);
      if (!made) return last;
      taken_[policy] = {recipe.batch, made->device_total, made->by_rows};
      if (last && made->device_total >= last->device_total) continue;
      last = std::move(made);
      if (last->fits || last->step_seconds > bounds_.fastest) return last;
      if (last->device_total > 4 * most_) return last;  // activations are not all that is too much
    }
    return last;
  }

  std::optional<Candidate> planned(const Recipe& recipe) {
    std::optional<Candidate> made = candidate_of(run_, recipe);
    if (!made) return made;
    result_.planned += made->plans;
    if (result_.computing == 0 && split_.stages == 1) {
      result_.computing = made->shares.computing;
      result_.passes = made->passes;
    }
    return made;
  }

  const PlannedRun& run_;
  const RankSplit split_;
  SearchBounds bounds_;
  const int64_t most_, rows_, data_;             // rows: of a step
  int64_t most_rows_ = 0;                        // of a micro-batch; 0: not known yet
  size_t policies_ = kPolicies.size();           // that are looked at
  std::array<Taken, kPolicies.size()> taken_{};  // of the ZeRO stage at hand
  SplitResult result_;
};

}  // namespace

double least_bubble(const Recipe& recipe, int64_t stages, const PassSeconds& of_step, double micro_batches) {
  if (is_schedule_table(recipe.schedule) || stages == 1) return 0;
  const bool is_interleaved = recipe.schedule == "interleaved", splits_backward = recipe.schedule.starts_with("zb-");
  const auto chunks = is_interleaved && recipe.stage_chunks > 0 ? recipe.stage_chunks : int64_t{usual_chunks(recipe.schedule)};
  const double of_part = (of_step.forward + (splits_backward ? 0 : of_step.backward)) / (micro_batches * static_cast<double>(chunks));
  return static_cast<double>(stages - 1) * of_part;
}

SplitResult search_split(const PlannedRun& run, const RankSplit& split, SearchBounds bounds) {
  return SplitSearch(run, split, bounds).made();
}

}  // namespace st

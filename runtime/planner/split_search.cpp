#include "planner/split_search.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

namespace st {
namespace {

constexpr double kHopeless = 1.1;                // a split that is so much slower than the fastest is not looked at further
constexpr int64_t kFewParameters = 300'000'000;  // with more, ZeRO-2 saves more time in the update than its smaller messages cost
constexpr double kSlow = 1.2;                    // one that no schedule makes the fastest

constexpr std::array<const char*, 3> kPolicies = {"none", "attention", "blocks"};  // of recompute, from the one that repeats least

/// The memory of a policy at one size of micro-batch. That of smaller ones follows, nearly, from the part that grows with the rows.
struct Taken {
  int64_t batch = 0, device_total = 0, by_rows = 0;  // batch 0: not planned yet
  double with(int64_t rows) const {
    return static_cast<double>(device_total - by_rows) +
           static_cast<double>(by_rows) * static_cast<double>(rows) / static_cast<double>(batch);
  }
};

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
    if (least_seconds() > kHopeless * bounds_.fastest) return result_;
    for (const int64_t zero : zero_stages()) {
      std::optional<Candidate> best = best_of(zero);
      const bool is_last = !best || !best->fits || best->step_seconds > kHopeless * bounds_.fastest;  // fewer shards take more
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

  /// The schedule's bubble with as many micro-batches as there are rows, on top of computing.
  double least_seconds() const {
    const double own = static_cast<double>(rows_) / static_cast<double>(data_);
    return bounds_.computing * (own + static_cast<double>(split_.stages) - 1) / own;
  }

  /// Micro-batches of a data rank, largest rows first.
  std::vector<int64_t> batches() const {
    std::vector<int64_t> all;
    if (rows_ % data_ != 0) return all;
    const int64_t own = rows_ / data_;
    for (int64_t batch = own; batch >= 1; --batch)
      if (own % batch == 0 && (batch & (batch - 1)) == 0 && (split_.stages == 1 || own / batch >= split_.stages)) all.push_back(batch);
    if (all.empty() && split_.stages > 1) all.push_back(1);
    return all;
  }

  std::optional<Candidate> best_of(int64_t zero) {
    std::optional<Candidate> best;
    taken_ = {};
    const std::vector<int64_t> rows = batches();
    for (const int64_t batch : rows) {
      Recipe recipe = run_.recipe;
      recipe.stages = split_.stages;
      recipe.tensor = split_.tensor;
      recipe.zero = zero;
      recipe.batch = batch;
      recipe.global_batch = 0;
      recipe.micro_batches = 0;
      recipe.accumulate = rows_ / (batch * data_);
      if (split_.stages == 1 && is_schedule_table(recipe.schedule)) recipe.schedule = "1f1b";
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
    if (split_.stages == 1 || !best.fits || is_schedule_table(best.recipe.schedule) || best.step_seconds > kSlow * bounds_.fastest) return;
    for (const char* schedule : {"interleaved", "zb-v"}) {
      Recipe recipe = best.recipe;
      recipe.schedule = schedule;
      std::optional<Candidate> other = planned(recipe);
      if (other && other->fits && other->step_seconds < best.step_seconds) best = std::move(*other);
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
    if (result_.computing == 0 && split_.stages == 1) result_.computing = made->shares.computing;
    return made;
  }

  const PlannedRun& run_;
  const RankSplit split_;
  SearchBounds bounds_;
  const int64_t most_, rows_, data_;             // rows: of a step
  std::array<Taken, kPolicies.size()> taken_{};  // of the ZeRO stage at hand
  SplitResult result_;
};

}  // namespace

SplitResult search_split(const PlannedRun& run, const RankSplit& split, SearchBounds bounds) {
  return SplitSearch(run, split, bounds).made();
}

}  // namespace st

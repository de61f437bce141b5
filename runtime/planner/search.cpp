#include "planner/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <tuple>
#include <utility>

#include "base/plain_locale.h"
#include "base/text.h"
#include "planner/split_search.h"
#include "recipe/can_offload.h"
#include "recipe/kernel_needs_of.h"

namespace st {
namespace {

constexpr size_t kAtATime = 2;  // splits; more would know less of each other

/// Little exchange first: pure data ranks with ZeRO, then tensor ranks within a node, then stages.
std::vector<RankSplit> splits_of(const PlannedRun& run) {
  std::vector<RankSplit> all;
  const int64_t ranks = run.recipe.ranks;
  for (int64_t stages = 1; stages <= std::min<int64_t>(ranks, 64); ++stages)
    for (int64_t tensor = 1; tensor <= run.machine.ranks_per_node && stages * tensor <= ranks; ++tensor)
      if (ranks % (stages * tensor) == 0) all.push_back({stages, tensor});
  std::ranges::stable_sort(all, {}, [](const RankSplit& of) { return of.stages * of.tensor; });
  return all;
}

class Search {
 public:
  Search(const PlannedRun& run, Workers& workers) : run_(run), workers_(workers) {}

  SearchResult made() {
    look_at_splits();
    add_asked();
    know_what_fits();
    if (!any_fits()) {
      offload();
      know_what_fits();
    }
    sort();
    if (any_fits()) std::erase_if(result_.best, [](const Candidate& of) { return !of.fits; });
    return std::move(result_);
  }

 private:
  void look_at_splits() {
    const std::vector<RankSplit> splits = splits_of(run_);
    SearchBounds bounds;
    for (size_t first = 0; first < splits.size(); first += kAtATime) {
      const size_t count = std::min(kAtATime, splits.size() - first);
      std::array<SplitResult, kAtATime> results;
      workers_.run(static_cast<int64_t>(count), [&](int64_t i) {
        const auto each = static_cast<size_t>(i);
        results[each] = search_split(run_, splits[first + each], bounds);
      });
      for (SplitResult& of : results) add(of, bounds);
    }
  }

  void add(SplitResult& of, SearchBounds& bounds) {
    result_.planned += of.planned;
    if (bounds.computing == 0) {
      bounds.computing = of.computing;
      bounds.passes = of.passes;
    }
    for (Candidate& best : of.best) {
      if (best.fits && best.step_seconds < bounds.fastest && !best.knows_all_stages) plan_all_stages(best);
      if (best.fits) bounds.fastest = std::min(bounds.fastest, best.step_seconds);
      result_.best.push_back(std::move(best));
    }
  }

  void plan_all_stages(Candidate& of) {
    const int64_t before = of.plans;
    know_all_stages(run_, of, workers_);
    result_.planned += of.plans - before;
  }

  /// The first and the last stage say too little, or too much, of a pipeline: all stages of those that may be among the fastest.
  void know_what_fits() {
    constexpr double kHopeless = 2;  // times the fastest
    while (true) {
      double fastest = HUGE_VAL;
      Candidate* next = nullptr;
      for (Candidate& of : result_.best) {
        if (!of.fits) continue;
        if (of.knows_all_stages)
          fastest = std::min(fastest, of.step_seconds);
        else if (next == nullptr || of.step_seconds < next->step_seconds)
          next = &of;
      }
      if (next == nullptr || next->step_seconds > kHopeless * fastest) return;
      plan_all_stages(*next);
    }
  }

  /// Adds the recipe that was asked for: it may have settings that the search does not try.
  void add_asked() {
    const Recipe& asked = run_.recipe;
    const auto key = [](const Recipe& of) {
      return std::tuple(of.stages, of.tensor, of.zero, of.batch, of.step_micro_batches(), of.recompute, of.schedule, of.offload);
    };
    if (std::ranges::any_of(result_.best, [&](const Candidate& of) { return key(of.recipe) == key(asked); })) return;
    std::optional<Candidate> made = candidate_of(run_, asked);
    result_.planned += made ? made->plans : 0;
    if (made) result_.best.push_back(std::move(*made));
  }

  bool any_fits() const { return std::ranges::any_of(result_.best, &Candidate::fits); }

  void sort() {
    std::ranges::stable_sort(result_.best, [](const Candidate& a, const Candidate& b) {
      if (a.fits != b.fits) return a.fits;
      return a.fits ? a.step_seconds < b.step_seconds : a.device_total < b.device_total;
    });
  }

  /// The slowest way to save memory: only where nothing else fits, of the splits that come nearest.
  void offload() {
    std::vector<Candidate>& found = result_.best;
    std::ranges::stable_sort(found, {}, &Candidate::device_total);
    std::vector<Recipe> from;
    for (const Candidate& of : found)  // data ranks alone exchange least
      if (from.size() < 3 || (of.recipe.stages == 1 && of.recipe.tensor == 1)) from.push_back(of.recipe);
    for (Recipe& recipe : from)
      for (const char* what : {"optimizer", "parameters", "gradients"}) {
        recipe.offload = what;
        if (can_offload(recipe, kernel_needs(run_.machine.profile).has_own_memory)) offload(recipe);
      }
  }

  /// With more recompute, then with smaller micro-batches, until it fits or that saves nothing.
  void offload(Recipe recipe) {
    std::optional<Candidate> least;
    while (true) {
      std::optional<Candidate> made = candidate_of(run_, recipe);
      result_.planned += made ? made->plans : 0;
      if (!made || (least && made->device_total >= least->device_total)) break;
      least = std::move(made);
      if (least->fits) break;
      if (recipe.recompute != "blocks") {
        recipe.recompute = "blocks";
      } else if (recipe.batch > 1) {
        int64_t times = 2;
        while (recipe.batch % times != 0) ++times;
        recipe.batch /= times;
        recipe.accumulate *= times;
      } else {
        break;
      }
    }
    if (least) result_.best.push_back(std::move(*least));
  }

  const PlannedRun& run_;
  Workers& workers_;
  SearchResult result_;
};

}  // namespace

std::string SearchResult::text(const PlannedRun& run) const {
  const PlainLocale locale;
  std::string out;
  const double tokens = run.tokens_per_step();
  for (const Candidate& of : best) {
    std::array<char, 160> numbers{};
    std::snprintf(numbers.data(), numbers.size(), "  %9.1f GB %10.3f s a step %12.0f tokens/s  ",
                  static_cast<double>(of.device_total) / 1e9, of.step_seconds, tokens / of.step_seconds);
    out += numbers.data() + of.text() + "\n";
  }
  return out;
}

SearchResult search(const PlannedRun& run, Workers& workers) { return Search(run, workers).made(); }

}  // namespace st

// Changes of a recipe that make a plan fit or run faster, with their prices: each change is planned, not estimated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/workers.h"
#include "planner/rank_plan.h"
#include "recipe/recipe_changes.h"

namespace st {

/// A change of the recipe with what it does to a rank.
struct Fix {
  KeyChanges changes;
  int64_t device_total = 0;  // afterwards
  double step_seconds = 0;
  int64_t saved = 0;   // bytes of device memory; negative: it takes more
  double slower = 0;   // share of the step's time; negative: faster
  double speedup = 0;  // afterwards, over one rank with the recipe as it is; 0: unknown
  bool fits = false;
  int64_t missing = 0;           // bytes of device memory, to fit
  bool is_nearest = false;       // no fix fits that keeps the results, and this one misses least
  bool changes_results = false;  // of training, beyond rounding

  /// "recompute attention: -6.1 GB, +4 % time, 3.1 times the speed of one rank; does not fit but comes nearest, 1.2 GB too much".
  std::string text() const;
};

/// Single changes that save memory or time, those that fit first, then by time. If none fits: also the cheapest found combination that
/// does, or the one that comes nearest, which is then first. The numbers are those of `rank`, whose plan is `of`; a step takes `seconds`
/// now. `workers` plan several at a time.
std::vector<Fix> fixes_for(const PlannedRun& run, const RankPlan& of, int32_t rank, double seconds, Workers& workers);

}  // namespace st

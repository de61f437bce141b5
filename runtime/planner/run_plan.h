// All ranks of a run, planned and simulated in one process.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/rank_plan.h"
#include "planner/simulation.h"

namespace st {

/// Ranks on the same stage that compute as many micro-batches and have as many elements of parameters in all. The numbers are those of
/// `first`. The others make the same collectives; but which parameters the last grains of a shard are of differs (cut_parameters), so
/// another rank's memory and bytes may differ by a grain of 1,024 elements in some parameters, and it has no kernels for a parameter of
/// which it has nothing.
struct RankClass {
  int32_t first = 0;
  int64_t ranks = 0;
  MeshPosition at;
  RankNumbers numbers;
  RankTrace trace;
};

/// Something goes wrong with a rank, or with its links.
struct Trouble {
  enum class Kind : uint8_t { straggler, slow_link } kind = Kind::straggler;
  int32_t rank = 0;
  double factor = 1;  // times as long
};

class RunPlan {
 public:
  /// Plans one rank of each class. Throws what plan_of_rank() throws.
  explicit RunPlan(const PlannedRun& run);

  const PlannedRun& run() const { return run_; }
  const std::vector<RankClass>& classes() const { return classes_; }
  const RankClass& class_of(int32_t rank) const { return classes_[class_of_rank_[static_cast<size_t>(rank)]]; }
  /// The class that takes most of a device's memory.
  const RankClass& fullest() const;
  bool fits() const { return fullest().numbers.memory.device_total() <= run_.device_memory_of_rank(); }

  /// One step of all ranks.
  SimulatedStep simulate(const std::vector<Trouble>& troubles = {}, const std::function<void(const SimulatedSpan&)>& watch = {}) const;
  /// Of the pipeline, with who is on which side; empty: one stage.
  const std::vector<StageLink>& links() const { return links_; }

 private:
  void classify();

  PlannedRun run_;
  std::vector<RankClass> classes_;
  std::vector<size_t> class_of_rank_;
  std::vector<StageLink> links_;
};

/// A run over days: what failures leave of its time.
struct Failures {
  double hours_between = 0;         // on one node, on average; 0: none fails
  double restart_seconds = 300;     // until ranks compute again after a failure
  double save_seconds = 0;          // that a checkpoint blocks the step
  int64_t steps_between_saves = 0;  // 0: the number that loses least (Young 1974, Daly 2006)
};
struct Goodput {
  double share = 1;  // of time that makes progress which is not lost
  int64_t steps_between_saves = 0;
};
/// The share of time left by saves, by the work since the last checkpoint that a failure loses (half an interval on average), and by
/// restarts, at these rates.
Goodput goodput(double step_seconds, int64_t nodes, const Failures& failures);

}  // namespace st

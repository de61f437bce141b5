// All ranks of a run, planned and simulated in one process.
#pragma once

#include <cstdint>
#include <functional>
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

  /// One step of all ranks, as simulate() runs it; borrows from this object.
  Simulation simulation() const;
  SimulatedStep simulate(const std::vector<Trouble>& troubles = {}, const std::function<void(const SimulatedSpan&)>& watch = {}) const;

 private:
  void classify();

  PlannedRun run_;
  std::vector<RankClass> classes_;
  std::vector<size_t> class_of_rank_;
  std::vector<StageLink> links_;  // of the pipeline; empty: one stage
};

}  // namespace st

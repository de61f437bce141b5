// The timeline of each rank in a predicted step, in the form of st_trainer_timeline, so that both can be drawn one above the other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/simulation.h"
#include "report/pipeline_times.h"

namespace st {

/// Simulates a step and keeps what its ranks do: of at most 32 ranks all, else the first of each stage.
class PredictedTimeline {
 public:
  /// The traces and links of `run` are borrowed for this object's lifetime. Throws what simulate() throws.
  explicit PredictedTimeline(Simulation run);
  PredictedTimeline(const PredictedTimeline&) = delete;
  PredictedTimeline& operator=(const PredictedTimeline&) = delete;

  const SimulatedStep& step() const { return step_; }
  /// "ranks" of st_trainer_timeline: times count from the begin of the step; without "step" and of exchanges only names and times.
  std::string json() const;

 private:
  struct Interval {
    double began = 0, ended = 0;
  };
  struct OfRank {
    StageLane lane;
    std::vector<Interval> computed;
    std::vector<SimulatedCollective> exchanges;  // as they end
  };

  void add(const SimulatedSpan& span);
  std::string exchanges_json(const OfRank& of) const;

  Simulation run_;
  std::map<int32_t, OfRank> shown_;  // by rank
  SimulatedStep step_;
};

}  // namespace st

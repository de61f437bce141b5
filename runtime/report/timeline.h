// Time spent in a run's last steps, by rank, for its report and for trace viewers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exec/exchange_queue.h"
#include "parts/rank_times.h"

namespace st {

struct StepTimes {
  int64_t step = 0;
  std::vector<RankTimes> ranks;

  /// The slowest rank's computing time divided by the mean of all; NaN if no rank computed.
  double straggler() const;
  size_t slowest() const;  // rank with the longest computing time
};

/// The last steps of all ranks. A step allocates nothing.
class Timeline {
 public:
  explicit Timeline(size_t ranks);

  /// Adds a step and returns its times, by rank, for the caller to fill. Drops existing entries of this step and later ones.
  std::vector<RankTimes>& add(int64_t step);
  std::span<const StepTimes> steps() const { return std::span(kept_).first(count_); }  // oldest first
  std::string json() const;                                                            // "steps" of st_trainer_timeline

 private:
  static constexpr size_t kSteps = 16;
  std::vector<StepTimes> kept_;
  size_t count_ = 0;
};

/// The intervals in which a thread computed between `began` and `ended`, as [[began, ended],..] in microseconds: the time between the
/// exposed waits that `exchanges` recorded. If it no longer has all of them, the result starts after the first one that it has.
std::string computing_json(double began, double ended, const ExchangeQueue& exchanges);

}  // namespace st

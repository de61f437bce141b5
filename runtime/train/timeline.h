// Where the time of a run's last steps went, by rank: for its report, and for whoever draws what ranks did when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json_line.h"
#include "exec/exchange_queue.h"

namespace st {

/// Of one rank in one step, in seconds.
struct RankTimes {
  double seconds = 0;   // the whole step; 0: not known
  double exchange = 0;  // in exchange with others, waits for them included
  double exposed = 0;   // what its computing did not hide of that

  double computing() const;
  double hidden() const;  // the share of the exchange
  /// "milliseconds" to "hidden" of st_trainer_timeline.
  void add_to(JsonLine& line) const;
};

struct StepTimes {
  int64_t step = 0;
  std::vector<RankTimes> ranks;

  /// The computing time of the slowest rank by the mean of all; NaN where none has computed.
  double straggler() const;
  size_t slowest() const;  // a rank
};

/// The last steps of all ranks. A step allocates nothing.
class Timeline {
 public:
  explicit Timeline(size_t ranks);

  /// Of the ranks of a step, for the caller to fill. Those of this step and later ones that were there are forgotten.
  std::vector<RankTimes>& add(int64_t step);
  std::span<const StepTimes> steps() const { return std::span(kept_).first(count_); }  // the oldest first
  std::string json() const;                                                            // "steps" of st_trainer_timeline

 private:
  static constexpr size_t kSteps = 16;
  std::vector<StepTimes> kept_;
  size_t count_ = 0;
};

/// When a thread computed from `began` to `ended`, as [[began, ended],..] in microseconds: between what `exchanges` did not hide of its
/// exchange. Of more than that keeps, what is behind the first that it has.
std::string computing_json(double began, double ended, const ExchangeQueue& exchanges);

}  // namespace st

// Where a rank's time in a step went.
#pragma once

#include "base/json_line.h"

namespace st {

/// Times of one rank in one step, in seconds.
struct RankTimes {
  double seconds = 0;   // the whole step; 0: not known
  double exchange = 0;  // in collectives, including waits for other ranks
  double exposed = 0;   // the part of `exchange` that did not overlap computing

  double computing() const;
  double hidden() const;  // the share of `exchange` that overlapped computing
  /// Adds the keys "milliseconds" to "hidden" of st_trainer_timeline.
  void add_to(JsonLine& line) const;
};

}  // namespace st

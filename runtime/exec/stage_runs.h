// The sections that a rank of a pipeline ran in its last step, with their times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/os/machine.h"
#include "plan/pipeline_schedule.h"

namespace st {

struct StageRun {
  StageAction action = {};
  double began = 0, ended = 0;  // os::seconds()
  double waited = 0;     // seconds of it in which the rank waited for messages of other stages; a section receives before it computes
  double exchanged = 0;  // seconds of it in collectives that computing did not hide

  double computed() const { return std::max(ended - began - waited - exchanged, 0.0); }
  double computed_from() const { return std::min(began + waited, ended); }
};

/// Written by the rank's thread during a step, which allocates nothing, and read between steps. On a device of its own memory the times are
/// those at which the host gives the work, not those at which it runs.
class StageRuns {
 public:
  /// Makes room for so many runs a step, if there is less. Runs beyond it are not recorded.
  void make_room(size_t runs) { runs_.resize(std::max(runs_.size(), runs)); }
  /// A step begins.
  void clear() {
    count_ = 0;
    is_open_ = false;
  }

  /// The rank runs an instruction of this action. Ends the run of another one; goes on with the last run if it is of this action: the time
  /// since leave(), as of a release behind early copies of weights, is a wait in it. `exposed`: ExchangeQueue::exposed_seconds().
  void enter(const StageAction& action, double exposed) {
    if (count_ > 0 && runs_[count_ - 1].action == action) return go_on();
    leave(exposed);
    is_open_ = count_ < runs_.size();
    if (is_open_) runs_[count_++] = {.action = action, .began = os::seconds()};
    exposed_ = exposed;
  }
  void leave(double exposed) {
    if (!is_open_) return;
    StageRun& run = runs_[count_ - 1];
    run.ended = os::seconds();
    run.exchanged = std::max(exposed - exposed_ - run.waited, 0.0);
    is_open_ = false;
  }
  void add_wait(double seconds) {
    waited_ += seconds;
    if (is_open_) runs_[count_ - 1].waited += seconds;
  }

  std::span<const StageRun> all() const { return std::span(runs_).first(count_); }
  double waited() const { return waited_; }  // seconds of all steps, also those between two runs

 private:
  void go_on() {
    if (!is_open_) runs_[count_ - 1].waited += os::seconds() - runs_[count_ - 1].ended;
    is_open_ = true;
  }

  std::vector<StageRun> runs_;
  size_t count_ = 0;
  bool is_open_ = false;
  double exposed_ = 0;  // when the open run began
  double waited_ = 0;
};

}  // namespace st

// Times of the ranks of this process in a trainer's steps, and those of all ranks as far as they are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/exchange_queue.h"
#include "parts/rank_report.h"
#include "report/pipeline_times.h"
#include "report/timeline.h"
#include "team/rank_groups.h"

namespace st {

class RankClocks {
 public:
  /// Allocates all that steps need. The groups outlive this.
  explicit RankClocks(RankGroups& groups);

  /// A rank's collectives in a step.
  struct Exchanges {
    double exposed = 0;                    // seconds in them that did not overlap computing
    const ExchangeQueue* queue = nullptr;  // in which they ran, for the timeline
  };
  /// Begins a step, with all clocks. start() starts a rank's anew, and stop() ends it, on the thread that runs the rank.
  void begin(int64_t step);
  void start(size_t here);
  void stop(size_t here, const Exchanges& exchanges);
  /// Takes the times of the step, which all ranks of this process have ended.
  void take();

  /// The caller's rank in the step that was taken last.
  double exchange_seconds() const { return times_[0].exchange; }
  double hidden() const { return times_[0].hidden(); }
  /// Slowest rank's computing by the mean; in a host's group of the step before, whose times ranks learn when this one begins. NaN: not
  /// known.
  double straggler() const;
  /// The caller's rank in `step`; empty if that is not the step that was taken last.
  RankTimes times_in(int64_t step) const { return step == timed_step_ ? times_[0] : RankTimes(); }
  /// In a host's group: keeps all ranks' times of `step`, if each rank told its own.
  void keep(int64_t step, const std::vector<RankReport>& of_all);

  const Timeline& timeline() const { return timeline_; }
  /// Actions of the stages in the last step: of all ranks, once those of a host's group have shared it, else of this process's.
  PipelineTimes pipeline_times() const;
  /// Between steps; in a host's group with several stages a collective call of all ranks.
  void share_pipeline_times();
  std::string timeline_json() const;  // of st_trainer_timeline

 private:
  struct Clock {
    double exchanged = 0;         // seconds, before this step
    double began = 0, ended = 0;  // os::seconds()
  };

  PipelineTimes own_pipeline_times() const;

  RankGroups& groups_;
  std::vector<Clock> clocks_;         // by rank of this process
  std::vector<RankTimes> times_;      // likewise, in timed_step_
  std::vector<Exchanges> exchanges_;  // likewise
  int64_t step_ = 0, timed_step_ = 0;
  Timeline timeline_;
  PipelineTimes shared_times_;  // in a host's group
};

}  // namespace st

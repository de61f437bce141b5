// A trace of all ranks for chrome://tracing and Perfetto: one row per rank, in this process or another, with its steps. With several ranks,
// rows below it show when it computed and what it exchanged; with several stages, also its actions. Lanes of the predicted step may follow.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "run_ranks.h"

namespace cli {

class RankTrace {
 public:
  /// Create it on all ranks, on one file system. Rank 0 truncates the file; throws Failure if that fails. An empty path writes nothing.
  RankTrace(const std::string& path, const RunRanks& ranks);
  ~RankTrace();
  RankTrace(const RankTrace&) = delete;
  RankTrace& operator=(const RankTrace&) = delete;

  /// Collective call after a step of `trainer`: ranks exchange how long they computed. `began` and `ended` are times of seconds_now(). A
  /// step with more exchanges or waits than the library keeps (64) shows the last ones.
  void add_step(st_trainer* trainer, int64_t step, double began, double ended);
  /// Collective call after the last step, which completes the JSON list. A run that ends without it lacks the closing bracket, which
  /// viewers do not need. With `forecast`, which gives the JSON of st_trainer_forecast, rank 0 alone first adds what that predicts: below
  /// each rank a lane "rank N, predicted", which begins where the step of median duration did, with the largest differences. Without steps
  /// `forecast` is not called.
  void finish(const std::function<Json()>& forecast = {});

 private:
  std::string names_of(int rank, const Json& times);
  std::string spans_of(const Json& rank, double straggler);
  struct Step {
    int64_t step = 0;
    double began = 0, ended = 0;
  };

  /// `began`: when each process began the step, by rank.
  std::string predicted_step(const Json& forecast, int64_t step, const std::vector<double>& began) const;
  void append(const std::string& events);

  const RunRanks& ranks_;
  std::string path_;
  int file_ = -1;
  std::vector<Step> steps_;       // of this process
  std::map<int, int64_t> shown_;  // by rank: sequence of the last exchange that is in the file
};

}  // namespace cli

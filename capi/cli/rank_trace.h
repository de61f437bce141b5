// A trace of all ranks for chrome://tracing and Perfetto: one row per rank, in this process or another, with its steps. With several ranks,
// rows below it show when it computed and what it exchanged; with several stages, also its actions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

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
  /// Collective call that completes the JSON list. A run that ends without it lacks the closing bracket, which viewers do not need.
  void finish();

 private:
  std::string names_of(int rank, const Json& times);
  std::string spans_of(const Json& rank, double straggler);
  void append(const std::string& events);

  const RunRanks& ranks_;
  std::string path_;
  int file_ = -1;
  std::map<int, int64_t> shown_;  // by rank: sequence of the last exchange that is in the file
};

}  // namespace cli

// What every rank did when, in a file that chrome://tracing and Perfetto show: for each rank, of this process or another, a row of its
// steps; of several, below it when it computed, and what it exchanged with others meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "run_ranks.h"

namespace cli {

class RankTrace {
 public:
  /// All ranks make one, on one file system. Rank 0 starts the file anew; throws Failure where that cannot be. path "": nothing is written.
  RankTrace(const std::string& path, const RunRanks& ranks);
  ~RankTrace();
  RankTrace(const RankTrace&) = delete;
  RankTrace& operator=(const RankTrace&) = delete;

  /// Behind a step of `trainer`, on all ranks, which tell each other how long they computed: `began` and `ended` as of seconds_now(). Of a
  /// step with more exchanges or waits than the library keeps (64) the last are shown.
  void add_step(st_trainer* trainer, int64_t step, double began, double ended);
  /// All ranks call it: the file is a whole JSON list then. One that ends before it lacks the last bracket, which viewers do not need.
  void finish();

 private:
  std::string names_of(int rank, bool is_alone);
  std::string spans_of(const Json& rank, double straggler);
  void append(const std::string& events);

  const RunRanks& ranks_;
  std::string path_;
  int file_ = -1;
  std::map<int, int64_t> shown_;  // by rank: sequence of the last exchange that is in the file
};

}  // namespace cli

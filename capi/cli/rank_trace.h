// What every rank did when, in a file that chrome://tracing and Perfetto show: for each rank a row of its steps, and below it one of what
// it exchanged with others meanwhile.
#pragma once

#include <cstdint>
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

  /// Behind a step, on all ranks: `began` and `ended` as of seconds_now(). Of a step with more exchanges than the flight record keeps (64)
  /// the last are shown.
  void add_step(int64_t step, double began, double ended);
  /// All ranks call it: the file is a whole JSON list then. One that ends before it lacks the last bracket, which viewers do not need.
  void finish();

 private:
  void append(const std::string& events);

  const RunRanks& ranks_;
  std::string path_;
  int file_ = -1;
  int64_t shown_ = -1;  // sequence of the last exchange that is in the file
};

}  // namespace cli

// Measures candidates for a product against the kernels' default schedule and keeps the winner. Tiles do not change results; external
// libraries, if the caller admits them, do.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/log.h"
#include "base/memory_source.h"
#include "base/os/machine.h"
#include "gemm/candidates.h"
#include "gemm/tuning_cache.h"
#include "parts/gemm_choice.h"

namespace st {

struct TunedTiles {
  TileSchedule tiles;  // a request for choose_gemm(); the caller's own if nothing was faster
  ScheduleSource source = ScheduleSource::table;
};

class GemmTuner {
 public:
  struct Parts {
    const GemmKernels& kernels;
    std::string_view kernel_class;
    TuningCache& cache;
    std::shared_ptr<MemorySource> memory;       // for the operands during a measurement
    std::function<int64_t()> available_memory;  // bytes that may be allocated now
    Logger log;
    std::function<double()> clock = os::seconds;  // tests of the decision replace it
  };
  explicit GemmTuner(Parts parts) : parts_(std::move(parts)) {}

  /// Looks in the cache, or measures for at most `seconds` on these workers, with new random operands in each round.
  /// - The winner replaces the default if it is faster in nine of ten rounds and by 1 % or more in the median. The cache keeps the result.
  /// - A product too large for the time or the memory keeps the default; the log says so.
  /// - A library must compute the same as the default up to rounding, and must also beat the best tiles by the same margin.
  TunedTiles tune(const GemmProblem& problem, const GemmWish& wish, Workers& workers, double seconds, const GemmContest& contest = {});
  /// The same for a choice made from this request.
  GemmChoice tuned(const GemmChoice& choice, const GemmWish& wish, Workers& workers, double seconds, const GemmContest& contest = {});

 private:
  Parts parts_;
};

}  // namespace st

// Measures a product's candidates against the schedule that the kernels choose themselves, and keeps the winner. Other tiles leave the bits
// the same; libraries of others, where the caller lets them compete, have bits of their own.
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
  TileSchedule tiles;  // a wish for choose_gemm(): the caller's own where nothing was faster
  ScheduleSource source = ScheduleSource::table;
};

class GemmTuner {
 public:
  struct Parts {
    const GemmKernels& kernels;
    std::string_view kernel_class;
    TuningCache& cache;
    std::shared_ptr<MemorySource> memory;       // of the operands, for as long as a product is measured
    std::function<int64_t()> available_memory;  // bytes that may be taken now
    Logger log;
    std::function<double()> clock = os::seconds;  // another in tests of what wins
  };
  explicit GemmTuner(Parts parts) : parts_(std::move(parts)) {}

  /// From the cache, or by measuring for at most `seconds` on these workers, with operands drawn anew for each round. The winner replaces
  /// the default where nine of ten rounds saw it faster, and the middle one by 1 % or more; whatever won is kept in the cache. A product
  /// too large for the time or the memory keeps the default, and the log says so. A library has to compute what the default does, but for
  /// rounding, and to be faster than the best tiles too, by as much.
  TunedTiles tune(const GemmProblem& problem, const GemmWish& wish, Workers& workers, double seconds, const GemmContest& contest = {});
  /// The same of a choice that was made of this wish.
  GemmChoice tuned(const GemmChoice& choice, const GemmWish& wish, Workers& workers, double seconds, const GemmContest& contest = {});

 private:
  Parts parts_;
};

}  // namespace st

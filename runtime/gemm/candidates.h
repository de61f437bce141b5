// Schedules worth measuring for a product: all of one piece of K, so that whichever wins, the bits are the same.
#pragma once

#include <vector>

#include "gemm/gemm_kernels.h"
#include "gemm/machine_model.h"

namespace st {

/// What may compete with the default, beside it: other tiles, libraries, or both.
struct GemmContest {
  bool tiles = true;
  std::vector<const GemmLibrary*> libraries = {};
};

struct GemmCandidate {
  TileSchedule schedule;  // as run
  double rate = 0;        // predicted, flop/s
};

/// What `wish` (as the caller's M and N go; 0 is free) leaves open, the best `most` by prediction. The first is the default, what the
/// kernels choose themselves; the others follow, the fastest first. All of the default's kc. `order_is_wished`: the order, which has no 0,
/// is the caller's.
std::vector<GemmCandidate> gemm_candidates(const GemmKernels& kernels, const GemmProblem& problem, const TileSchedule& wish,
                                           bool order_is_wished, const MachineModel& machine, int threads, size_t most);

/// A schedule as_run() as a wish of the caller's.
TileSchedule as_wished(const GemmProblem& problem, const TileSchedule& as_run);

/// Whether the kernels run this schedule as it stands, with the default's piece of K, and every size of the wish is kept.
bool is_candidate(const GemmKernels& kernels, const GemmProblem& problem, const TileSchedule& wish, const TileSchedule& schedule);

}  // namespace st

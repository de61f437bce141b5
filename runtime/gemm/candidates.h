// Schedules worth measuring for a product. All have the same kc, so that the result has the same bits whichever wins.
#pragma once

#include <vector>

#include "gemm/gemm_kernels.h"
#include "gemm/machine_model.h"

namespace st {

/// The competitors of the default schedule: other tiles, libraries, or both.
struct GemmContest {
  bool tiles = true;
  std::vector<const GemmLibrary*> libraries = {};
};

struct GemmCandidate {
  TileSchedule schedule;  // as_run()
  double rate = 0;        // predicted, flop/s
};

/// The best `most` schedules by prediction that keep the sizes set in `wish` (in the caller's M and N; 0 is free) and have the default's
/// kc. The first is the default, the kernels' own choice; the others follow, fastest first. `order_is_wished`: the caller set the order,
/// which has no 0.
std::vector<GemmCandidate> gemm_candidates(const GemmKernels& kernels, const GemmProblem& problem, const TileSchedule& wish,
                                           bool order_is_wished, const MachineModel& machine, int threads, size_t most);

/// Converts a schedule as_run() to the caller's M and N.
TileSchedule as_wished(const GemmProblem& problem, const TileSchedule& as_run);

/// Whether the kernels run this schedule unchanged, with the default's kc and every size set in `wish`.
bool is_candidate(const GemmKernels& kernels, const GemmProblem& problem, const TileSchedule& wish, const TileSchedule& schedule);

}  // namespace st

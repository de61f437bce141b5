// Predicts the cost of a product on this machine: cycles of the micro-kernel, and bytes through each cache level. After the analysis of
// Low et al., "Analytical modeling is enough for high-performance BLIS" (2016), with the machine's cache sizes.
#pragma once

#include <string_view>

#include "base/os/cpu.h"
#include "gemm/schedule.h"

namespace st {

struct MachineModel {
  CacheSizes caches;
  double clock = 3e9;                                      // cycles per second
  double flops_per_cycle = 0;                              // of the kernels' instruction set; 0: unknown
  int64_t lanes = 4;                                       // floats in a vector
  double peak() const { return clock * flops_per_cycle; }  // flop/s of one core
};

/// `kernel_class`: the backend's. Caches and clock are this machine's; flops per cycle for the problem's types come from a table by CPU
/// identity.
MachineModel machine_model(const os::CpuIdentity& cpu, std::string_view kernel_class, const GemmProblem& problem, double clock);

/// For problem and schedule as_run(). An estimate for ranking schedules; includes packing B if the schedule packs it.
double predicted_seconds(const GemmProblem& problem, const TileSchedule& schedule, const MachineModel& machine, int threads);

double flops_of(const GemmProblem& problem);

}  // namespace st

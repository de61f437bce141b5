// What a product would cost on this machine, before it is run: cycles of the micro-kernel, and bytes through each level of the caches.
// After the analysis of Low et al., "Analytical modeling is enough for high-performance BLIS" (2016), with sizes that are read.
#pragma once

#include <string_view>

#include "base/os/cpu.h"
#include "gemm/schedule.h"

namespace st {

struct MachineModel {
  CacheSizes caches;
  double clock = 3e9;                                      // cycles a second
  double flops_per_cycle = 0;                              // of the instruction set that the kernels are of; 0: of none that is known
  int64_t lanes = 4;                                       // floats of a vector
  double peak() const { return clock * flops_per_cycle; }  // of one core
};

/// `kernel_class`: the backend's. Caches and clock are this machine's; what a core does in a cycle with the problem's elements is a table
/// by the CPU's identity.
MachineModel machine_model(const os::CpuIdentity& cpu, std::string_view kernel_class, const GemmProblem& problem, double clock);

/// Of the problem and schedule as_run(). A guess that ranks schedules; packing B is counted where the schedule packs it.
double predicted_seconds(const GemmProblem& problem, const TileSchedule& schedule, const MachineModel& machine, int threads);

double flops_of(const GemmProblem& problem);

}  // namespace st

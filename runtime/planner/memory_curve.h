// The memory that a rank uses while it computes, by kind.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/step_trace.h"

namespace st {

/// One run of a section: its greatest use of each arena. Arenas of values that outlive sections (parameters, gradients, optimizer, packed,
/// control) are always full; the stash has the micro-batches in flight; activations, buckets and workspace what lives at the same time.
struct MemoryMoment {
  int32_t section = 0, micro_batch = 0;
  double began = 0, ended = 0;  // seconds of the rank's own computing and collectives, without its waits
  std::array<int64_t, kArenas> bytes{};
};

/// In the order in which the rank runs its sections.
std::vector<MemoryMoment> memory_curve(const Plan& plan, const RankTrace& trace);

}  // namespace st

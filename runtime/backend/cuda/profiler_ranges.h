// Ranges for NVIDIA's profilers (NVTX, domain "ScaleTrain"): the time in which the host gives a call of an op, a fold or a recording to a
// stream. The profiler finds the kernels that were given meanwhile; those of a recording it shows by node. Without a profiler, which says
// so by NVTX_INJECTION64_PATH when the process starts, a range is one comparison.
#pragma once

#include "ir/op.h"

namespace st::cuda {

/// From here to its end, on this thread. Ranges of a thread lie in each other.
class ProfilerRange {
 public:
  explicit ProfilerRange(Op op);
  /// `name` lives as long as the process.
  explicit ProfilerRange(const char* name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace st::cuda

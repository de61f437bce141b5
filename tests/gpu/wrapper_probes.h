// Each wrapper of runtime/backend/cuda/device, on a device or on the simulated one (tests/cuda): results against the host's.
#pragma once

#include <cstdint>
#include <span>

namespace st {

/// Prints one JSON line a result, of device 0: elements, and how many differ. Products of numbers that are not whole have a line with the
/// share that has the bits of tensor_core.h instead, which the simulated device has only if it cuts sums.
struct WrapperProbe {
  const char* name;
  bool is_fault;                               // a kernel with a fault of tests/cuda, whose result may be right or wrong
  bool needs_sm90a;                            // its instructions are Hopper's alone
  int64_t (*print)(const WrapperProbe& self);  // how many elements differ
};

std::span<const WrapperProbe> wrapper_probes();

}  // namespace st

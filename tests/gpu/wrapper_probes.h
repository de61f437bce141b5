// Each wrapper of runtime/backend/cuda/device, on a device or on the simulated one (tests/cuda): results against the host's.
#pragma once

#include <cstdint>
#include <string_view>

namespace st {

/// One JSON line a probe, of device 0: elements, and how many differ. Returns how many do in all. Products of numbers that are not whole
/// have a line with the share that has the bits of tensor_core.h instead, which the simulated device has not.
int64_t print_wrapper_probes();

/// Runs a kernel with a fault of tests/cuda, and prints whether its result is right. False: there is no such fault.
bool print_planted_fault(std::string_view fault);

}  // namespace st

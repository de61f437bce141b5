// CUDA's runtime for devices that are not there: the toolkit's functions on tests/device/stream_engine, with memory that the host cannot
// touch. Link it in the place of cudart.
#pragma once

#include <cstdint>
#include <string>

#include "device/stream_engine.h"

namespace st::simulated {

struct RuntimeSettings {
  Order order = Order::eager;
  int devices = 2;
  int64_t memory = int64_t{1} << 30;  // of a device
  bool forgets_waits = false;         // streams wait for no event: a planted fault
};

/// A new process, as far as CUDA goes. Everything of the one before must be gone.
void start_runtime(const RuntimeSettings& settings);

/// The n-th call from now on that takes memory fails: of a device's memory or pinned, a stream, an event, a graph, and what a library
/// makes that asks by is_failing(). 0: none does.
void fail_allocation(int64_t n);
bool has_allocation_failed();
bool is_failing();

/// Buffers, pinned memory, streams and events that there are.
int64_t live_objects();
/// Calls so far in this process that allocate or free memory, or make a stream or event; those that begin a recording; and the works of all
/// recordings that were made.
struct ResourceCalls {
  int64_t resources = 0, recordings = 0, recorded_works = 0;
};
ResourceCalls resource_calls();
int device_count();
/// The message of the kernel that failed; empty: none has.
std::string kernel_failure();

}  // namespace st::simulated

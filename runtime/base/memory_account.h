// How many bytes are allocated for each purpose, now and at the peak.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace st {

/// Purpose of a buffer. The first eight are the arenas of a plan (ir/memory.h), in their order; the values are those of the C ABI.
enum class MemoryRole : int32_t {
  parameters,
  gradients,
  optimizer,
  activations,
  stash,
  buckets,
  packed,
  workspace,
  control,
  inputs,
  tensors,
  other,
  file,  // file-backed: not memory, excluded from every sum
  host   // the host's memory of a device that offloads (Backend::allocate_on_host): excluded from every sum, which is of the device's
};
constexpr int32_t kMemoryRoles = 14;
std::string_view name_of(MemoryRole role);

/// Requested bytes. `peak` is the maximum of `now` since the last reset_peak().
struct CountedBytes {
  int64_t now = 0, peak = 0;
};

/// Counts the buffers of one source when they are allocated and freed. Safe to call from several threads; each call sees whole buffers.
class MemoryAccount {
 public:
  struct Uses {
    CountedBytes all;                             // sum over all roles except `file` and `host`
    std::array<CountedBytes, kMemoryRoles> of{};  // by role; the peaks may be of different moments
  };

  /// Adds `bytes` to a role; negative: subtracts.
  void add(MemoryRole role, int64_t bytes);
  int64_t bytes() const;  // all roles except `file` and `host`
  Uses uses() const;
  /// Sets each peak to the current value, like torch.cuda.reset_peak_memory_stats.
  void reset_peak();

 private:
  mutable std::mutex mutex_;
  Uses uses_;
};

}  // namespace st

// How much memory is out, for what, and the most that it has been.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace st {

/// What a buffer is for. The first are the arenas of a plan (ir/memory.h), in their order; the numbers are those of the C ABI.
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
  file  // mapped: not memory, whatever it holds, and in no sum
};
constexpr int32_t kMemoryRoles = 13;
std::string_view name_of(MemoryRole role);

/// Bytes, as they were asked for. `peak` is the most that `now` has been since the last reset_peak().
struct CountedBytes {
  int64_t now = 0, peak = 0;
};

/// Counts the buffers of one source, where they come and go: nothing is counted while they are used. Safe to call from several threads;
/// each call sees whole buffers.
class MemoryAccount {
 public:
  struct Uses {
    CountedBytes all;                             // all.now is the sum over the roles but `file`
    std::array<CountedBytes, kMemoryRoles> of{};  // by role; they need not have been at their peaks at once
  };

  /// `bytes` more of a role; below 0: as many fewer.
  void add(MemoryRole role, int64_t bytes);
  int64_t bytes() const;  // of all but `file`
  Uses uses() const;
  /// Each peak is what is there now, and grows from here: torch.cuda.reset_peak_memory_stats.
  void reset_peak();

 private:
  mutable std::mutex mutex_;
  Uses uses_;
};

}  // namespace st

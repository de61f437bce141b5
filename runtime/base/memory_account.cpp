#include "base/memory_account.h"

#include <algorithm>

namespace st {

std::string_view name_of(MemoryRole role) {
  constexpr std::array<std::string_view, kMemoryRoles> kNames = {"parameters", "gradients", "optimizer", "activations", "stash",
                                                                 "buckets",    "packed",    "workspace", "control",     "inputs",
                                                                 "tensors",    "other",     "file",      "host"};
  return kNames[static_cast<size_t>(role)];
}

void MemoryAccount::add(MemoryRole role, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto count = [bytes](CountedBytes& use) {
    use.now += bytes;
    use.peak = std::max(use.peak, use.now);
  };
  if (role != MemoryRole::file && role != MemoryRole::host) count(uses_.all);
  count(uses_.of[static_cast<size_t>(role)]);
}

int64_t MemoryAccount::bytes() const {
  const std::lock_guard lock(mutex_);
  return uses_.all.now;
}

MemoryAccount::Uses MemoryAccount::uses() const {
  const std::lock_guard lock(mutex_);
  return uses_;
}

void MemoryAccount::reset_peak() {
  const std::lock_guard lock(mutex_);
  uses_.all.peak = uses_.all.now;
  for (CountedBytes& use : uses_.of) use.peak = use.now;
}

}  // namespace st

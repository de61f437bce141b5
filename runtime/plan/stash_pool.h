// Memory of the stash that the chunks of a stage share: they are rarely full at the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/step_order.h"

namespace st {

/// Places, each for one buffer at a time. A chunk's buffer is at the begin of a place.
struct StashPool {
  int64_t bytes = 0;
  std::vector<std::vector<int64_t>> begins;  // by chunk and micro-batch
};

/// Gives each chunk and micro-batch a place that no other one has at the same time (interval colouring, by first run). Chunks of nearly the
/// same size have places of the same size. `bytes`: of a buffer, by chunk. None if micro-batch 0 has not all chunks at the same time: a
/// layout names its chunks by their places there.
std::optional<StashPool> stash_pool(std::span<const std::vector<BufferUse>> uses, std::span<const int64_t> bytes);

}  // namespace st

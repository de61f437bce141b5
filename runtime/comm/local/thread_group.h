// Ranks that are threads of one process: one reads the memory of the other in place.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport.h"

namespace st {

constexpr int kMaxThreadRanks = 256;

/// Returns one end per rank; size is 1 to kMaxThreadRanks. Ends may be destroyed in any order; a rank whose end is destroyed has left.
std::vector<std::unique_ptr<Transport>> make_thread_group(int size);

}  // namespace st

// Ranks that are threads of one process: what one posts, the other reads where it lies.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport.h"

namespace st {

constexpr int kMaxThreadRanks = 256;

/// One end a rank, 1 to kMaxThreadRanks of them. An end may outlive the others; a rank whose end is gone has left.
std::vector<std::unique_ptr<Transport>> make_thread_group(int size);

}  // namespace st

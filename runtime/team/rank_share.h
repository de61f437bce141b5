// A rank's share of a machine that it shares with other ranks.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "parts/context.h"

namespace st {

/// Number of ranks of the group in this process.
int ranks_in_process(const Communicator& ranks);

/// Bytes of memory that a rank may allocate. Collective call of all ranks: all ranks on a host read the free memory before any allocates.
int64_t memory_part(Communicator& ranks, const Context& context);

}  // namespace st

// What of a machine is a rank's, beside the others that are on it.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "train/context.h"

namespace st {

/// How many ranks of the group are in this process.
int ranks_in_process(const Communicator& ranks);

/// Bytes that a rank may take of the memory that is there: all on a host look at it before any of them takes its part. To be called by all
/// ranks.
int64_t memory_part(Communicator& ranks, const Context& context);

}  // namespace st

// What ranks exchange in forward and backward goes on beside the computing.
#pragma once

#include "ir/program.h"

namespace st {

/// Puts an `await` behind each reduce_scatter and all_gather of the forward and backward sections that has something to go on beside:
/// before the first node that reads what the exchange writes or writes what it reads, else at the section's end, where nothing is under way
/// any more. Gradients that are exchanged where they were made are kept for it: one such bucket is under way at a time, beside the one that
/// fills, so that they take at most 2 x max(bucket, largest gradient). The order of the exchanges stays, and so does every bit.
/// Call after all passes that change nodes: an await names its exchange by its index. memory_plan() keeps what is under way alive.
void overlap(Program& program);

}  // namespace st

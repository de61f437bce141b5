// Overlaps the collectives of forward and backward with computing.
#pragma once

#include "ir/program.h"

namespace st {

/// Adds an `await` for each reduce_scatter and all_gather of the forward and backward sections that can overlap with other nodes. Bitwise
/// the same results; the order of the collectives does not change.
/// - The await is before the first node that reads what the collective writes or writes what it reads, or else at the section's end.
/// - Gradients that are reduced in the memory where they were made stay alive until then. Only one such bucket is in flight while the next
///   fills, so they take at most 2 x max(bucket, largest gradient).
/// Call after all passes that change nodes, since an await refers to its collective by index. memory_plan() keeps operands in flight alive.
void overlap(Program& program);

}  // namespace st

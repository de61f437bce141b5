// The memory that a plan's instructions read and write.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace st {

/// The bytes [begin, end) of an arena. In the host's memory they count from the begin of a slot, and slots do not overlap.
struct MemoryAccess {
  Arena arena = Arena::host;
  SlotId slot = -1;  // in the host's memory; -1: in an arena
  int64_t begin = 0, end = 0;
  bool writes = false;
  bool operator==(const MemoryAccess&) const = default;
};

/// All that an instruction accesses, or its collective or message until it has ended: reads first, then writes. A wait accesses nothing.
/// - A node's operand in an arena on the host is the copy of its window.
/// - A kernel may write all of the workspace.
/// - A collective counts as writing all of the tensors that it completes, this rank's shards too.
std::vector<MemoryAccess> accesses_of(const Plan& plan, const Instruction& at);

/// The begin of the buffer of the stash from which a send takes its message in its micro-batch, or whose memory a release is for: a release
/// waits for the last message that its send took from there. 0: not in the stash.
int64_t buffer_sent_from(const Plan& plan, const Instruction& at);

/// The access of this rank's part of a slot, as a micro-batch has it.
MemoryAccess access_of(const Plan& plan, SlotId slot, int64_t micro_batch, bool writes);

}  // namespace st

// Ranks that are processes of one machine, over shared memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/transport.h"

namespace st {

struct ProcessGroupOptions {
  std::string job;  // what the ranks of one group have in common and no other group of this machine has: "host:29500 start 0"
  int rank = 0, size = 1;
  double patience = 60;                     // seconds to wait for the others at the start
  int64_t ring_bytes = 0;                   // of each ordered pair of ranks, a power of two; 0: 256 KiB, less in a large group
  std::function<bool()> is_cancelled = {};  // looked at while it waits for the others
};

constexpr int kMaxProcessRanks = 1024;

/// A ring of such a group, where the host does not say it; and a rank's part of all of them.
int64_t process_ring_bytes(int size);
inline int64_t process_group_bytes(int size) { return (size - 1) * process_ring_bytes(size); }

/// Meets the other ranks in a segment of shared memory that has no name any more when all are there: whatever becomes of them, nothing is
/// left behind. What a job left that was killed before that (a page or two) is replaced by the next one of its name, or taken away by any
/// later one of this user's, after a minute. So it is with a start that is refused: its page tells the reason to ranks that come late, if
/// their processes began before.
///
/// Throws timeout naming the ranks that did not come, rank_failed where one ended while it waited, rank_mismatch with both sides where one
/// came with another size, ring or version of this library, busy where the rank is there already, cancelled, out_of_memory where /dev/shm
/// is full, unavailable where there is none. But for busy and cancelled, who waits on the other ranks gets the same.
///
/// A rank that was killed is known at once, whoever its parent is. One that is stopped is silent. It starts a thread, which shows the
/// others that this rank lives while it computes. Ranks may be threads of one process as well.
std::unique_ptr<Transport> join_process_group(const ProcessGroupOptions& options);

}  // namespace st

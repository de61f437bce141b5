// Ranks that are processes of one machine, over shared memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/transport.h"

namespace st {

struct ProcessGroupOptions {
  std::string job;  // equal on the ranks of a group, different from every other group on this machine: "host:29500 start 0"
  int rank = 0, size = 1;
  double patience = 60;                     // seconds to wait for the others at the start
  int64_t ring_bytes = 0;                   // per ordered pair of ranks, a power of two; 0: 256 KiB, less in a large group
  std::function<bool()> is_cancelled = {};  // polled while it waits for the others
};

constexpr int kMaxProcessRanks = 1024;

/// The default ring_bytes; and the bytes of the rings of one rank.
int64_t process_ring_bytes(int size);
inline int64_t process_group_bytes(int size) { return (size - 1) * process_ring_bytes(size); }

/// Joins the other ranks in a segment of shared memory. Its name is removed once all have joined, so nothing remains however they end.
/// - A job that is killed before that leaves a page or two. The next job of the same name replaces them, or any later job of this user
///   removes them after a minute.
/// - A refused start leaves its segment too: it gives the reason to ranks that join late, if their processes began before the refusal.
/// - A killed rank is noticed at once, whoever its parent is; a stopped rank is silent.
/// - Starts a thread, which shows the others that this rank is alive while it computes. Ranks may also be threads of one process.
///
/// | throws        | when                                                                         | also on waiting ranks |
/// |---------------|------------------------------------------------------------------------------|-----------------------|
/// | timeout       | ranks did not join in time; names them                                       | yes                   |
/// | rank_failed   | a rank ended during the start                                                | yes                   |
/// | rank_mismatch | a rank has another size, ring or library version; shows both sides           | yes                   |
/// | out_of_memory | /dev/shm is full                                                             | yes                   |
/// | unavailable   | there is no /dev/shm                                                         | yes                   |
/// | busy          | this rank has already joined                                                 | no                    |
/// | cancelled     | is_cancelled returned true                                                   | as rank_failed        |
std::unique_ptr<Transport> join_process_group(const ProcessGroupOptions& options);

}  // namespace st

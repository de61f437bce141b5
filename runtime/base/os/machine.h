// The machine and this process: cores, memory, time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace st::os {

/// Cores this process may use: its affinity mask, lowered by a cgroup quota (v1 and v2), at least 1.
int available_cores();
/// Memory still available on this machine, bytes: MemAvailable, lowered by a cgroup limit.
int64_t available_memory();
/// Memory of this machine, bytes, lowered by a cgroup limit.
int64_t total_memory();
/// Swap space that is free, bytes.
int64_t free_swap();
/// Resident memory of this process, bytes.
int64_t resident_memory();
double seconds();                         // monotonic
std::string reason_of(int error_number);  // "No such file or directory"
std::string host_name();
int64_t process_id();
/// Lowers this thread's priority for good: a small share of a core on a busy machine, a whole core on an idle one.
void give_way_to_other_threads();
/// Asks the system to zero these whole pages of anonymous memory in a forked child, whatever forks it. False: the system cannot.
bool clear_in_forked_child(std::span<std::byte> pages);

}  // namespace st::os

// The machine and this process: cores, memory, time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace st::os {

/// Cores this process may use: its affinity mask, lowered by a cgroup quota (v1 and v2), at least 1.
int available_cores();
/// Memory of this machine that can still be had, bytes: MemAvailable, lowered by a cgroup limit.
int64_t available_memory();
/// All that there would be if nobody had any: the machine's, lowered by a cgroup's limit.
int64_t total_memory();
/// Swap space that is free, bytes.
int64_t free_swap();
/// Resident memory of this process, bytes.
int64_t resident_memory();
double seconds();                         // monotonic
std::string reason_of(int error_number);  // "No such file or directory"
std::string host_name();
int64_t process_id();
/// This thread runs behind the process's others from here on: on a busy machine it gets a small share of a core, on an idle one all of it.
void give_way_to_other_threads();
/// Asks that the child of a fork finds whole pages of memory that is no file's zero, however it was forked. False where the system does
/// not.
bool clear_in_forked_child(std::span<std::byte> pages);

}  // namespace st::os

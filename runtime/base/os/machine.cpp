#include "base/os/machine.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/os/cgroup.h"
#include "base/os/files.h"
#include "base/text.h"

namespace st::os {
namespace {

int affinity_cores() {
  // The kernel refuses a mask smaller than its own, so it grows until it fits.
  for (size_t cores = 1024; cores <= (1U << 18); cores *= 2) {
    std::vector<cpu_set_t> mask(CPU_ALLOC_SIZE(cores) / sizeof(cpu_set_t) + 1);
    const size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) return CPU_COUNT_S(bytes, mask.data());
    if (errno != EINVAL) break;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

/// A line "name:  123 kB" of a file under /proc, in bytes; -1 when it is not there.
int64_t kilobytes_of(const char* path, std::string_view name) {
  const std::string file = short_file(path);
  for (const std::string_view line : lines_of(file))
    if (line.starts_with(name)) return whole_number(line.substr(std::min(line.find_first_of("0123456789"), line.size())), 0) * 1024;
  return -1;
}

}  // namespace

int available_cores() { return available_cores_under(""); }

int available_cores_under(const std::string& root) {
  int cores = affinity_cores();
  if (const double quota = cgroup_limits(root).cores; quota > 0) cores = std::min(cores, static_cast<int>(std::ceil(quota)));
  return std::max(cores, 1);
}

int64_t available_memory() {
  int64_t available = kilobytes_of("/proc/meminfo", "MemAvailable:");
  if (available < 0) available = int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (const auto free = cgroup_limits("").memory_free; free >= 0) available = std::min(available, free);
  return available;
}

int64_t total_memory() {
  int64_t total = kilobytes_of("/proc/meminfo", "MemTotal:");
  if (total < 0) total = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (const auto limit = cgroup_limits("").memory; limit >= 0) total = std::min(total, limit);
  return total;
}

int64_t free_swap() { return std::max<int64_t>(kilobytes_of("/proc/meminfo", "SwapFree:"), 0); }

int64_t resident_memory() { return std::max<int64_t>(kilobytes_of("/proc/self/status", "VmRSS:"), 0); }

std::string reason_of(int error_number) {
  std::array<char, 128> room{};
  return strerror_r(error_number, room.data(), room.size());  // glibc's, which returns the text
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

int64_t process_id() { return getpid(); }

void give_way_to_other_threads() {
  // Defined in linux/sched/types.h, not by glibc. The shortest slice that Linux allows: with a longer one a waking thread waits
  // milliseconds.
  struct {
    uint32_t size = sizeof(*this), policy = SCHED_OTHER;
    uint64_t flags = 0;
    int32_t nice = 15;  // 0 to 19: gets 1/28 of a core that another thread keeps busy, so a save does not starve
    uint32_t priority = 0;
    uint64_t slice = 100'000, deadline = 0, period = 0;  // ns
  } const wish;
  static_cast<void>(syscall(SYS_sched_setattr, 0, &wish, 0));  // this thread only; if refused, it keeps its priority
}

bool clear_in_forked_child([[maybe_unused]] std::span<std::byte> pages) {
#if defined(MADV_WIPEONFORK)
  if (pages.size() % static_cast<size_t>(sysconf(_SC_PAGESIZE)) != 0) return false;  // it would also clear the bytes after them
  // Emulators accept every advice: do not believe one that accepts an invalid advice.
  if (madvise(pages.data(), pages.size(), -1) == 0) return false;
  return madvise(pages.data(), pages.size(), MADV_WIPEONFORK) == 0;
#else
  return false;
#endif
}

}  // namespace st::os

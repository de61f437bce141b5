#include "base/os/cgroup.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/os/cpu.h"
#include "base/os/files.h"
#include "base/text.h"

namespace st::os {
namespace {

/// Where a hierarchy is mounted, and which of its groups is the mount's root.
struct Mount {
  std::string point, top;
  std::string controllers;  // version 1: the super options, "rw,cpu,cpuacct"; empty: version 2
};

bool lists(std::string_view commas, std::string_view word) {
  while (!commas.empty()) {
    const auto end = std::min(commas.find(','), commas.size());
    if (commas.substr(0, end) == word) return true;
    commas.remove_prefix(std::min(end + 1, commas.size()));
  }
  return false;
}

/// Those that may limit cores or memory.
std::vector<Mount> mounts_of(const std::string& root) {
  std::vector<Mount> mounts;
  const std::string file = short_file(root + "/proc/self/mountinfo");
  for (const std::string_view line : lines_of(file)) {
    // id parent major:minor top point options [optional...] - type source super-options
    const size_t dash = line.find(" - cgroup");
    if (dash == std::string_view::npos) continue;
    const std::vector<std::string> of_type = words_of(line.substr(dash + 3));
    if (of_type.size() < 3) continue;
    const bool is_version_2 = of_type[0] == "cgroup2";
    if (!is_version_2 && (of_type[0] != "cgroup" || (!lists(of_type[2], "cpu") && !lists(of_type[2], "memory")))) continue;
    const std::vector<std::string> of_mount = words_of(line.substr(0, dash));
    if (of_mount.size() >= 6) mounts.push_back({of_mount[4], of_mount[3], is_version_2 ? "" : of_type[2]});
  }
  return mounts;
}

/// Our group's path for a controller, by the lines of /proc/self/cgroup; an empty `controller` means version 2.
std::string group_of(std::string_view groups, std::string_view controller) {
  for (const std::string_view line : lines_of(groups)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : lists(controllers, controller)) return std::string(line.substr(second + 1));
  }
  return "/";
}

/// The folders of our group and its parents within the mount. A container may see only the mount's root.
std::vector<std::string> folders_of(const std::string& root, const Mount& mount, std::string group) {
  if (mount.top != "/" && group.starts_with(mount.top)) group.erase(0, mount.top.size());
  std::vector<std::string> folders;
  for (; !group.empty() && group != "/"; group.erase(group.rfind('/')))
    if (group.front() == '/')
      folders.push_back(std::string(root).append(mount.point).append(group));
    else
      break;
  folders.push_back(root + mount.point);
  return folders;
}

/// A file that holds one number; -1 when it is missing or says "max".
int64_t number_in(const std::string& path) { return whole_number(short_file(path), -1); }

/// Reclaimable page cache of a group; `prefix` is "total_" in version 1, whose plain numbers exclude child groups.
int64_t page_cache_in(const std::string& path, const std::string& prefix) {
  const std::string file = short_file(path);
  int64_t sum = 0;
  for (const std::string_view line : lines_of(file)) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() == 2 && (words[0] == prefix + "inactive_file" || words[0] == prefix + "active_file")) sum += whole_number(words[1], 0);
  }
  return sum;
}

/// File names of one version's memory controller.
struct MemoryFiles {
  const char *limit, *used, *prefix;
};

constexpr MemoryFiles kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_"};
constexpr MemoryFiles kVersion2 = {"/memory.max", "/memory.current", ""};

struct Limits : CgroupLimits {
  void cap_cores(double quota, double period) {
    if (quota > 0 && period > 0) cores = cores > 0 ? std::min(cores, quota / period) : quota / period;
  }
  void cap_memory(const std::string& folder, const MemoryFiles& files) {
    constexpr int64_t kUnlimited = int64_t{1} << 60;  // version 1 says "no limit" with a number near 2^63
    const int64_t limit = number_in(folder + files.limit);
    // Most groups have no limit. Then skip the kernel's statistics, which are a good part of a context's start.
    if (limit < 0 || limit >= kUnlimited) return;
    const int64_t used = number_in(folder + files.used) - page_cache_in(folder + "/memory.stat", files.prefix);
    const int64_t left = std::max<int64_t>(limit - std::max<int64_t>(used, 0), 0);
    memory_free = memory_free >= 0 ? std::min(memory_free, left) : left;
    memory = memory >= 0 ? std::min(memory, limit) : limit;
  }
};

void read_version_2(const std::string& folder, Limits& limits) {
  const std::vector<std::string> quota_and_period = words_of(short_file(folder + "/cpu.max"));  // "150000 100000", "max 100000"
  if (quota_and_period.size() == 2)
    limits.cap_cores(static_cast<double>(whole_number(quota_and_period[0], 0)), static_cast<double>(whole_number(quota_and_period[1], 0)));
  limits.cap_memory(folder, kVersion2);
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root) {
  Limits limits;
  const std::string groups = short_file(root + "/proc/self/cgroup");
  for (const auto& mount : mounts_of(root)) {
    if (mount.controllers.empty())
      for (const auto& folder : folders_of(root, mount, group_of(groups, ""))) read_version_2(folder, limits);
    if (lists(mount.controllers, "cpu"))
      for (const auto& folder : folders_of(root, mount, group_of(groups, "cpu")))
        limits.cap_cores(static_cast<double>(number_in(folder + "/cpu.cfs_quota_us")),
                         static_cast<double>(number_in(folder + "/cpu.cfs_period_us")));
    if (lists(mount.controllers, "memory"))
      for (const auto& folder : folders_of(root, mount, group_of(groups, "memory"))) limits.cap_memory(folder, kVersion1);
  }
  return limits;
}

}  // namespace st::os

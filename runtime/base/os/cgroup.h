// Limits of the control groups of this process, versions 1 and 2.
#pragma once

#include <cstdint>
#include <string>

namespace st::os {

struct CgroupLimits {
  double cores = 0;          // the smallest quota / period; 0: no limit
  int64_t memory_free = -1;  // the smallest (limit - use), reclaimable page cache not counted as use; -1: no limit
  int64_t memory = -1;       // the smallest limit; -1: no limit
};

/// Reads <root>/proc/self/cgroup and <root>/proc/self/mountinfo, then every group from ours up to the mount. `root` is "" except in tests.
CgroupLimits cgroup_limits(const std::string& root);

/// os::available_cores() for the groups found under `root`: the affinity mask, lowered by a quota.
int available_cores_under(const std::string& root);

}  // namespace st::os

// Limits of the control groups that this process is in, version 1 and 2.
#pragma once

#include <cstdint>
#include <string>

namespace st::os {

struct CgroupLimits {
  double cores = 0;          // the tightest quota over period; 0: none
  int64_t memory_free = -1;  // the tightest limit less what its group uses (page cache that can be dropped not counted); -1: none
  int64_t memory = -1;       // the tightest limit itself; -1: none
};

/// Reads <root>/proc/self/cgroup and <root>/proc/self/mountinfo, then every group from ours up to the mount. `root` is "" but in tests.
CgroupLimits cgroup_limits(const std::string& root);

/// os::available_cores() by the groups found under `root`: the affinity mask, lowered by a quota.
int available_cores_under(const std::string& root);

}  // namespace st::os

// How long ranks wait for each other, and whom they ask and tell meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace st {

struct CommunicatorOptions {
  double deadline = 60;                               // seconds that a wait may take without a byte from or to whom it waits for
  std::function<bool()> is_cancelled = {};            // looked at in each wait; a wait that it ends aborts the group
  std::function<void(const std::string&)> warn = {};  // a rank that is slow: once for each wait, at a quarter of the deadline
  int64_t chunk = 16384;  // elements that are reduced at a time: 1 to 2^24; no result depends on it; alike on all ranks
};

}  // namespace st

// How long ranks wait for each other, and the callbacks of a wait.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace st {

struct CommunicatorOptions {
  double deadline = 60;                               // seconds that a wait may last while no byte moves to or from the awaited rank
  bool waits_for_living = false;                      // the deadline ends a wait only if a rank is silent for as long, and nothing warns
  std::function<bool()> is_cancelled = {};            // polled in each wait; returning true ends the wait and aborts the group
  std::function<void(const std::string&)> warn = {};  // names a slow rank: once per wait, after a quarter of the deadline
  int64_t chunk = 16384;                              // elements reduced at a time, 1 to 2^24; equal on all ranks; does not affect results
};

}  // namespace st

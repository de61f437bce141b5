// The options and child processes of the programs that run one seed after another.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace st::fuzz {

struct TrialOptions {
  double seconds = 5;
  uint64_t seed = 1;
  bool only = false;  // only that seed, in this process
  std::map<std::string, std::string> others;

  std::string other(const std::string& name) const { return others.contains(name) ? others.at(name) : ""; }
};
/// Parses --seconds 5 --seed 1, or --only 1, and other pairs of a name and a value.
TrialOptions trial_options(int count, char** words);

/// Zeroed memory that this process shares with its children.
template <class T>
T& shared_zeros() {
  void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return *static_cast<T*>(memory);
}

/// Runs seeds in a child, which stores its progress in `at`. Kills it if `at` is unchanged for a minute. Returns its wait status; a leak is
/// reported when it exits. This process must not have started threads.
int child_status(const std::atomic<uint64_t>& at, const std::function<void()>& play);

}  // namespace st::fuzz

// The options and the child processes of the programs that play one seed after another.
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
  bool only = false;  // that seed alone, in this process
  std::map<std::string, std::string> others;

  std::string other(const std::string& name) const { return others.contains(name) ? others.at(name) : ""; }
};
/// --seconds 5 --seed 1, or --only 1, and other pairs of a name and a value.
TrialOptions trial_options(int count, char** words);

/// Zeros in memory that this process's children share.
template <class T>
T& shared_zeros() {
  void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return *static_cast<T*>(memory);
}

/// Plays seeds in a child, which tells by `at` where it is, and is killed where that stands still for a minute. How it ended, as waitpid()
/// says; a leak is told when it exits. This process must not have started threads.
int child_status(const std::atomic<uint64_t>& at, const std::function<void()>& play);

}  // namespace st::fuzz

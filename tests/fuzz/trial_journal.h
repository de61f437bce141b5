// The reports of a child process that runs random products; the parent can still read them after the child has died.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace st::fuzz {

/// In shared memory, initially all zeros.
struct Journal {
  std::atomic<uint64_t> seed, problems, findings;
  std::array<char, 1600> doing;  // the current problem and schedule

  void begin(const std::string& what);
  void finding(const std::string& kernel_class, const std::string& what);
};

/// Create it before the first child. `trace`: also prints each run.
Journal& journal();
void trace_journal();

}  // namespace st::fuzz

// What a child process that plays random products tells its parent, which lives on when it dies.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace st::fuzz {

/// In shared memory, all zeros at first.
struct Journal {
  std::atomic<uint64_t> seed, problems, findings;
  std::array<char, 1600> doing;  // the problem and the schedule that run

  void begin(const std::string& what);
  void finding(const std::string& kernel_class, const std::string& what);
};

/// Made before the first child; `trace`: tells each run too.
Journal& journal();
void trace_journal();

}  // namespace st::fuzz

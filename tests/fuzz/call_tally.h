// Counts how often each function was called and how often it returned ST_OK: the coverage of a fuzzer run.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace st::fuzz {

/// Shared by child processes; only one of them counts at a time.
class CallTally {
 public:
  void count(const char* function, bool worked);
  uint64_t calls() const;
  int functions() const { return used_; }
  /// The functions listed in the file (one per line) that never returned ST_OK; empty if there are none.
  std::string missed(const char* symbols_file) const;

 private:
  struct Row {
    std::array<char, 48> name;
    uint64_t calls, worked;
  };
  const Row* find(const std::string& function) const;

  std::array<Row, 256> rows_;
  int used_;
};

/// The tally of this process; after share_tally(), which must precede the first child, that of all.
CallTally& tally();
void share_tally();

}  // namespace st::fuzz

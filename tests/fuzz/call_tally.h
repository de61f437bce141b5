// How often each function was called and how often it answered ST_OK: what a run of the fuzzer can be believed about.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace st::fuzz {

/// In memory that child processes share; only one of them counts at a time.
class CallTally {
 public:
  void count(const char* function, bool worked);
  uint64_t calls() const;
  int functions() const { return used_; }
  /// Of the functions that the file lists, one a line, those that never answered ST_OK; empty: none.
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

/// This process's own, or from share_tally() on, called before the first child is made, that of all.
CallTally& tally();
void share_tally();

}  // namespace st::fuzz

// What memory gives to ranks that only copy.
#pragma once

#include <cstdint>
#include <vector>

namespace cli {

class CopyLimit {
 public:
  /// `threads` threads at once, each with two arrays of its own.
  CopyLimit(int64_t bytes, int threads);
  /// Bytes a second that the slowest of them copies.
  double measure();

 private:
  int64_t bytes_;
  std::vector<std::vector<char>> from_, to_;
};

}  // namespace cli

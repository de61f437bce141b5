// Memory bandwidth of ranks that only copy.
#pragma once

#include <cstdint>
#include <vector>

namespace cli {

class CopyLimit {
 public:
  /// `threads` threads copy at once, each between two arrays of its own.
  CopyLimit(int64_t bytes, int threads);
  /// Bytes per second copied by the slowest thread.
  double measure();

 private:
  int64_t bytes_;
  std::vector<std::vector<char>> from_, to_;
};

}  // namespace cli

// Memory bandwidth of a loop with the traffic of clip and AdamW: one read of the gradients, then 4 reads and 3 writes per element.
#pragma once

#include <cstdint>
#include <vector>

namespace cli {

class StreamLimit {
 public:
  /// Works on four arrays of `elements` floats, split evenly over `threads` threads.
  StreamLimit(int64_t elements, int threads);
  /// Elements per second in one pass.
  double measure();

 private:
  int64_t elements_;
  int threads_;
  std::vector<float> gradient_, parameter_, moment1_, moment2_;
};

}  // namespace cli

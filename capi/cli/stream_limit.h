// What memory gives to a loop with the traffic of clip and AdamW: one read of the gradients, then 4 reads and 3 writes an element.
#pragma once

#include <cstdint>
#include <vector>

namespace cli {

class StreamLimit {
 public:
  /// Over four arrays of `elements` floats, in equal parts by `threads` threads.
  StreamLimit(int64_t elements, int threads);
  /// Elements a second, of one pass.
  double measure();

 private:
  int64_t elements_;
  int threads_;
  std::vector<float> gradient_, parameter_, moment1_, moment2_;
};

}  // namespace cli

// The workspace of embedding_backward.
#pragma once

#include <cstdint>

namespace st::cuda {

/// Two arrays of keys, u64, one for each token; then the first key of each row of the weight and the end of the last one's, u32.
struct EmbeddingWork {
  int64_t tokens, rows;

  int64_t first_keys() const { return 2 * tokens * 8; }  // bytes from the start
  int64_t bytes() const { return first_keys() + (rows + 1) * 4; }
};

}  // namespace st::cuda

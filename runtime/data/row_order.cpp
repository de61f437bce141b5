#include "data/row_order.h"

#include <algorithm>
#include <numeric>

namespace st {

int64_t RowOrder::fill(int64_t first, std::span<int64_t> out) const {
  if (stream_) {
    stream_->fill(first, out);
    return std::ssize(out);
  }
  const int64_t count = std::clamp<int64_t>(rows_ - first, 0, std::ssize(out));
  std::iota(out.begin(), out.begin() + count, first);
  return count;
}

}  // namespace st

#include "backend/permutation.h"

#include <cstddef>

namespace st {

Permutation::Permutation(const Shape& x, const Ints& order) {
  for (const int64_t axis : order) {
    const auto from = static_cast<int32_t>(axis);
    const int64_t n = x[from], step = x.elements(from + 1, x.rank());
    if (n == 1) continue;
    const auto last = static_cast<size_t>(rank - 1);
    if (rank > 0 && x_stride[last] == step * n) {
      size[last] *= n;
      x_stride[last] = step;
    } else {
      size[static_cast<size_t>(rank)] = n;
      x_stride[static_cast<size_t>(rank++)] = step;
    }
  }
  if (rank == 0) {
    size[0] = x_stride[0] = 1;
    rank = 1;
  }
  for (auto d = static_cast<size_t>(rank); d-- > 0;) {
    y_stride[d] = elements;
    elements *= size[d];
  }
}

}  // namespace st

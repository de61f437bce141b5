// Equal parts of a number of elements.
#pragma once

#include <algorithm>
#include <cstdint>

namespace st {

/// Where the share of rank `rank` of `ranks` begins; it ends where that of the next one begins. The first shares have one more element each
/// where the ranks do not divide the elements.
constexpr int64_t share_begin(int64_t elements, int64_t ranks, int64_t rank) {
  return elements / ranks * rank + std::min(elements % ranks, rank);
}

}  // namespace st

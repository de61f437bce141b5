#include "backend/rank_fold.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backend/kernel_side.h"
#include "base/combine.h"

namespace st {

/// A block at a time and beside the sums: where these are one of the terms, an earlier term would overwrite it before it is read.
void run_fold(const RankFold& fold) {
  constexpr int64_t kBlock = 1024;
  alignas(64) std::array<std::byte, kBlock * 8> block;
  const int64_t width = bytes_of(fold.dtype), own_width = sum_bytes_of(fold.dtype, fold.type);
  const bool is_narrow = own_width < sum_bytes_of(fold.dtype);
  for (int64_t done = 0; done < fold.elements; done += kBlock) {
    const int64_t count = std::min(kBlock, fold.elements - done);
    std::byte* const sums = pointer_to(fold.sums) + done * own_width;
    bool is_first = !fold.adds;
    if (fold.adds && is_narrow)
      widen(fold.dtype, sums, block.data(), count);
    else if (fold.adds)
      std::memcpy(block.data(), sums, static_cast<size_t>(count * own_width));
    for (const Address term : fold.terms) {
      const std::byte* const piece = pointer_to(term) + done * width;
      if (std::exchange(is_first, false))
        widen(fold.dtype, piece, block.data(), count);
      else if (fold.type == SumType::own)
        combine_rounded(fold.dtype, piece, block.data(), count);
      else
        combine(fold.dtype, ReduceOp::sum, piece, block.data(), count);
    }
    if (is_narrow)
      narrow(fold.dtype, block.data(), sums, count);
    else
      std::memcpy(sums, block.data(), static_cast<size_t>(count * own_width));
  }
}

}  // namespace st

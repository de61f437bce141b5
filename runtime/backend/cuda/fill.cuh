// y = the same element everywhere, as bits. A thread writes 16 bytes; the last one may have fewer.
#pragma once

#include <device/access.h>
#include <device/threads.h>
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

/// y is aligned to 16 bytes. Word: an unsigned integer of the element's size.
template <class Word>
KERNEL(kBlock)
fill_elements(Word* y, Word element, int64_t elements) {
  constexpr int kCount = static_cast<int>(16 / sizeof(Word));
  const int64_t first = (int64_t{block_index()} * kBlock + thread_index()) * kCount;
  if (first + kCount <= elements) {
    Vector<Word, kCount> all;
    for (int i = 0; i < kCount; ++i) all.at[i] = element;
    store_vector(y + first, all);
    return;
  }
  for (int64_t i = first; i < elements; ++i) y[i] = element;
}

}  // namespace st::cuda

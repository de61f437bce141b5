// Elements as kernels load and store them: 16 bytes at a time, a vector a thread. On an H100 grids of a vector a thread copy at 3,033 GB/s,
// persistent ones at 2,840 (tests/gpu/README.md).
#pragma once

#include <cstdint>

namespace st::cuda {

constexpr int kBlock = 256;  // threads

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

/// One load or store if it is aligned to its size, of 16 bytes at most.
template <class T, int kCount>
struct alignas(kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16) Vector {
  T at[kCount];
};

/// Addresses as one argument of a kernel; those behind the last one are null.
template <class T, int kMost>
struct Pointers {
  T* at[kMost];
};

/// Blocks whose threads have `per_thread` elements each.
inline int64_t blocks_for(int64_t elements, int64_t per_thread) {
  const int64_t per_block = per_thread * kBlock;
  return (elements + per_block - 1) / per_block;
}

}  // namespace st::cuda

// The same names as runtime/backend/cuda/device/mma.h. A warp's fragments are multiplied at once by the last lane that comes; sixteen
// products are added from zero in order of k, and their sum is added to the accumulator, each rounded to fp32. Numbers below the normal
// range are zeros. After cut_sums(true) (warp_product.h) sums are an H100's instead. A copy happens when its thread waits for it; until
// then its place holds NaN.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include <device/threads.h>

#include "grid_engine.h"

namespace st::cuda {

enum class Half { bf16, f16 };

template <Half kType, int kRows, int kColumns>
void multiply_add(float (&sums)[kRows][kColumns][4], const uint32_t (&a)[kRows][4], const uint32_t (&b)[kColumns][2],
                  int line = __builtin_LINE()) {
  simulated::multiply_add({&sums[0][0][0], &a[0][0], &b[0][0], kRows, kColumns, kType == Half::bf16}, line);
}

inline void must_be_sixteen(const void* place, const char* what) {
  if (reinterpret_cast<uintptr_t>(place) % 16 != 0) throw std::runtime_error(std::string("misaligned address: ") + what);
}

template <bool kTransposed, class RowOf>
void load_matrices(uint32_t (&to)[4], const RowOf& row_of) {
  const int lane = thread_index() % kLanes, g = lane / 4, t = lane % 4;
  must_be_sixteen(row_of(lane), "a row of a matrix");
  for (int matrix = 0; matrix < 4; ++matrix) {
    uint16_t pair[2];
    for (int i = 0; i < 2; ++i) {
      const int row = kTransposed ? 2 * t + i : g, column = kTransposed ? g : 2 * t + i;
      const void* const from = row_of(8 * matrix + row);
      pair[i] = static_cast<const uint16_t*>(from)[column];
    }
    to[matrix] = pair[0] | uint32_t{pair[1]} << 16;
  }
}

inline void copy_async(void* to, const void* from, int bytes) {
  must_be_sixteen(to, "where a copy goes");
  if (bytes > 0) must_be_sixteen(from, "what is copied");
  using Word [[gnu::may_alias]] = uint64_t;  // stores, which ThreadSanitizer sees, unlike a memset that the compiler expands
  for (int i = 0; i < 2; ++i) static_cast<Word*>(to)[i] = ~uint64_t{0};
  simulated::add_copy({to, from, bytes});
}
inline void commit_copies() { simulated::commit_copies(); }
template <int kPending>
void wait_copies() {
  while (const simulated::Copy* const copy = simulated::next_copy(kPending)) {
    auto* const to = static_cast<unsigned char*>(copy->to);
    std::memcpy(to, copy->from, static_cast<size_t>(copy->bytes));
    std::memset(to + copy->bytes, 0, static_cast<size_t>(16 - copy->bytes));
  }
}

}  // namespace st::cuda

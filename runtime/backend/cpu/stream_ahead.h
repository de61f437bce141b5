// How far ahead of its loads a kernel asks for lines. Intel's own prefetcher ends with the page, and one that comes to the next page by
// itself waits there each time. Zen's goes on, and what comes a page early only pushes lines in use out of the L1, where arrays that begin
// with a page share their sets: the few lines ahead that it is asked for there are as good as none (tests/bench/README.md).
#pragma once

#include <cstdint>

#include "base/os/cpu.h"

namespace st::cpu {

inline bool prefetches_across_pages() {
  static const bool is = os::cpu().vendor == "AuthenticAMD";
  return is;
}

/// Elements, of a pass over large arrays.
inline int64_t stream_ahead() { return prefetches_across_pages() ? 64 : 1024; }

/// Of passes over rows that stay in the L1: the next row, or several, so many elements.
inline int64_t rows_ahead(int64_t elements) { return prefetches_across_pages() ? 64 : elements; }

/// Rows that are normed together where they stay in the L1, what is read and what is written: one's sums run beside the slow operations
/// behind the other's.
inline int64_t rows_at_once(int64_t columns) { return columns <= 1536 ? 2 : 1; }

}  // namespace st::cpu

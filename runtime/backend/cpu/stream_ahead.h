// How far ahead of its loads a kernel prefetches. Intel's prefetcher stops at the end of a page, so a kernel without prefetches waits at
// every page. Zen's continues, and lines fetched a page early only evict lines in use from L1, where arrays that start at a page share
// their sets. So the distance there is short and has hardly any effect (tests/bench/README.md).
#pragma once

#include <cstdint>

#include "base/os/cpu.h"

namespace st::cpu {

inline bool prefetches_across_pages() {
  static const bool is = os::cpu().vendor == "AuthenticAMD";
  return is;
}

/// Elements, for a pass over large arrays.
inline int64_t stream_ahead() { return prefetches_across_pages() ? 64 : 1024; }

/// Elements, for passes over rows that stay in L1: `elements`, the next row or several.
inline int64_t rows_ahead(int64_t elements) { return prefetches_across_pages() ? 64 : elements; }

/// Rows that are normalised together as long as input and output stay in L1: the sums of one overlap with the slow operations of another.
inline int64_t rows_at_once(int64_t columns) { return columns <= 1536 ? 2 : 1; }

}  // namespace st::cpu

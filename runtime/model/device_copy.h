// Copies between device memories.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.h"

namespace st {

/// Between memories of two backends, or of one. The ranges do not overlap.
inline void copy_bytes(Backend& from, Address source, Backend& to, Address target, int64_t bytes) {
  if (&from == &to) return to.copy(target, source, bytes);
  if (from.is_host_memory()) return to.to_device(target, from.in_host(source), bytes);
  std::vector<std::byte> piece(static_cast<size_t>(std::min(from.transfer_bytes(bytes), bytes)));
  for (int64_t at = 0; at < bytes; at += std::ssize(piece)) {
    const int64_t count = std::min<int64_t>(std::ssize(piece), bytes - at);
    from.to_host(piece.data(), source + at, count);
    to.to_device(target + at, piece.data(), count);
  }
}

}  // namespace st

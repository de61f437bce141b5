// A copy to memory that is not read soon: a snapshot.
#pragma once

#include <cstddef>
#include <span>

namespace st {

/// Like memcpy for equal sizes, but bypasses the caches: it does not read the destination first and does not evict the caller's working
/// set. 1.5 times as fast as memcpy for copies of some MiB.
void stream_copy(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace st

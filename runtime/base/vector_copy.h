// A copy within the caches.
#pragma once

#include <cstddef>

namespace st {

/// Like memcpy, but always with vector moves. The C library switches to "rep movsb" at some KiB, which on Zen 3 and 4 is several times as
/// slow for unlucky pairs of addresses within a page (glibc bug 30994).
void vector_copy(void* to, const void* from, size_t bytes);

}  // namespace st

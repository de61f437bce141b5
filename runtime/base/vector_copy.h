// A copy within the caches.
#pragma once

#include <cstddef>

namespace st {

/// As memcpy, by moves of vectors alone. The C library's takes "rep movsb" for some KiB and more, which on Zen 3 and 4 is several times as
/// slow wherever the two addresses lie unluckily to each other within a page (glibc bug 30994).
void vector_copy(void* to, const void* from, size_t bytes);

}  // namespace st

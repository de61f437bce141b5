// Counts every allocation of every thread of the test program that it is linked into: malloc and its family, hence operator new too.
#pragma once

#include <cstdint>

namespace st {

/// Calls of malloc, calloc, realloc, aligned_alloc, posix_memalign and memalign in this process so far.
int64_t allocation_count();

}  // namespace st

// Linked into a test program, counts every allocation of every thread: malloc and its kin, and so operator new too.
#pragma once

#include <cstdint>

namespace st {

/// Calls of malloc, calloc, realloc, aligned_alloc, posix_memalign and memalign in this process so far.
int64_t allocation_count();

}  // namespace st

// Linked into a test program: counts its allocations, so that a test can check "allocates nothing", and makes one fail on request.
#pragma once

#include <cstdint>

namespace st {

/// Calls of operator new in this process so far.
int64_t allocations();

/// Makes the n-th call of this thread from now on throw std::bad_alloc, and only that one; 0: none.
void fail_allocation(int64_t n);

}  // namespace st

// Linked into a test program, counts its allocations, so that a test can say "allocates nothing", and lets one fail.
#pragma once

#include <cstdint>

namespace st {

/// Calls of operator new in this process so far.
int64_t allocations();

/// The n-th call of this thread from now on throws std::bad_alloc, and the next ones do not; 0: none does.
void fail_allocation(int64_t n);

}  // namespace st

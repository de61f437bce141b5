// Linked into a test program, counts its allocations, so that a test can say "allocates nothing".
#pragma once

#include <cstdint>

namespace st {

/// Calls of operator new in this process so far.
int64_t allocations();

}  // namespace st

// malloc of a whole test program, the library's and the C++ runtime's included: counted, and failing when it is told to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ledger.h"

namespace st::test {

/// Calls of malloc and its kin so far, on all threads, and the largest piece that was asked for since the last call.
int64_t mallocs();
size_t largest_malloc();

/// From now on the `n`-th call, counted from 0, gives no memory: that one alone, or all from there on.
void fail_malloc(int64_t n, Failing failing);
/// Ends it; true when one failed.
bool fail_no_malloc();

/// A host's allocator that takes nothing from malloc.
st_context_options options_past_malloc();
int64_t bytes_past_malloc();  // out, now

}  // namespace st::test

// malloc of a whole test program, including the library and the C++ runtime: counted, and failing on request.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ledger.h"

namespace st::test {

/// Calls of malloc and its variants so far, on all threads, and the largest request since the last call.
int64_t mallocs();
size_t largest_malloc();

/// From now on the `n`-th call, counted from 0, returns no memory: either that one or all from there on.
void fail_malloc(int64_t n, Failing failing);
/// Stops failing; true if a call failed.
bool fail_no_malloc();

/// A host's allocator that does not use malloc.
st_context_options options_past_malloc();
int64_t bytes_past_malloc();  // allocated now

}  // namespace st::test

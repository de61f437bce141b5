// operator new of a whole test program, the library's included: counted, and failing when it is told to. A program that links this has it
// in place of the C++ runtime's, and of a sanitizer's, which still sees what malloc gives.
#pragma once

#include <cstdint>

namespace st::test {

enum class Failing { once, for_good };

/// From now on the `n`-th, counted from 0, gives no memory: that one alone, or all from there on.
void fail_new(int64_t n, Failing failing);
/// Ends it; true when one failed.
bool fail_no_new();

/// Which is to fail after the `n`-th: the next one, but of calls that make thousands of them fewer and fewer, unless it is a long trial
/// (tests/capi/README.md).
int64_t next_to_fail(int64_t n);

/// How many so far were of 64 KiB and more: past the tables of a small plan, which are no buffers.
int64_t large_news();

}  // namespace st::test

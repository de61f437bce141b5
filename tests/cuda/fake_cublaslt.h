// Counts that tests read of the library in cuBLASLt's place (fake_cublaslt.cpp).
#pragma once

#include <atomic>
#include <cstdint>

template <class Count>
struct CublasLtCounts {
  Count created = 0;     // handles, descriptions, layouts and preferences since it was loaded
  Count alive = 0;       // of these
  Count heuristics = 0;  // calls
  Count products = 0;    // calls, recorded ones once
};
using FakeCublasLt = CublasLtCounts<int64_t>;

extern "C" const CublasLtCounts<std::atomic<int64_t>>* st_fake_cublaslt();  // ranks are threads
using AskFakeCublasLt = decltype(&st_fake_cublaslt);
/// `ask` says whether the call that asks is to fail, for lack of memory.
extern "C" void st_fake_cublaslt_asks(bool (*ask)());
using FakeCublasLtAsks = decltype(&st_fake_cublaslt_asks);

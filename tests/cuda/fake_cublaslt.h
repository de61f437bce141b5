// What tests ask the library in the place of cuBLASLt (fake_cublaslt.cpp) about itself.
#pragma once

#include <cstdint>

struct FakeCublasLt {
  int64_t created = 0;     // handles, descriptions, layouts and preferences since it was loaded
  int64_t alive = 0;       // of these
  int64_t heuristics = 0;  // calls
  int64_t products = 0;    // calls, recorded ones once
};

extern "C" const FakeCublasLt* st_fake_cublaslt();
using AskFakeCublasLt = decltype(&st_fake_cublaslt);

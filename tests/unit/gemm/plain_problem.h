// A product of row-major matrices without gaps, the starting point of tests.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st {

inline GemmProblem plain_problem(int64_t m, int64_t n, int64_t k) {
  return {.m = m, .n = n, .k = k, .a = {k, 1}, .b = {n, 1}, .c = {n, 1}};
}

}  // namespace st

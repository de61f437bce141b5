// A product of matrices that lie row by row without gaps: the problem that tests begin with.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st {

inline GemmProblem plain_problem(int64_t m, int64_t n, int64_t k) {
  return {.m = m, .n = n, .k = k, .a = {k, 1}, .b = {n, 1}, .c = {n, 1}};
}

}  // namespace st

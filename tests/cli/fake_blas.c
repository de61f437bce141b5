/* A BLAS of three loops for the tests of `bench gemm`. Built with ST_WRONG_BLAS it forgets the last term of each sum; with ST_DYING_BLAS it
 * ends its process. */
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static int threads;

EXPORT void openblas_set_num_threads(int wanted) { threads = wanted; }

EXPORT void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
                        int ldb, float beta, float* c, int ldc) {
  const int transposed = 112, row_major = 101;
  if (order != row_major || alpha != 1 || beta != 0 || threads != 1) abort();
#ifdef ST_DYING_BLAS
  abort();
#endif
#ifdef ST_WRONG_BLAS
  --k;
#endif
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int p = 0; p < k; ++p)
        sum += (trans_a == transposed ? a[(long)p * lda + i] : a[(long)i * lda + p]) *
               (trans_b == transposed ? b[(long)j * ldb + p] : b[(long)p * ldb + j]);
      c[(long)i * ldc + j] = sum;
    }
}

/* A BLAS of three loops for the tests of `bench gemm`, fp32 and bf16. Built with ST_WRONG_BLAS it forgets the last term of each sum; with
 * ST_DYING_BLAS it ends its process. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int threads;

EXPORT void openblas_set_num_threads(int wanted) { threads = wanted; }

static float widened(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

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

EXPORT void cblas_sbgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const uint16_t* a, int lda,
                         const uint16_t* b, int ldb, float beta, float* c, int ldc) {
  const long columns_a = trans_a == 112 ? m : k, rows_a = trans_a == 112 ? k : m;
  const long columns_b = trans_b == 112 ? k : n, rows_b = trans_b == 112 ? n : k;
  if (lda != columns_a || ldb != columns_b) abort();
  float *wide_a = malloc(sizeof(float) * (size_t)(rows_a * columns_a)), *wide_b = malloc(sizeof(float) * (size_t)(rows_b * columns_b));
  for (long i = 0; i < rows_a * columns_a; ++i) wide_a[i] = widened(a[i]);
  for (long i = 0; i < rows_b * columns_b; ++i) wide_b[i] = widened(b[i]);
  cblas_sgemm(order, trans_a, trans_b, m, n, k, alpha, wide_a, lda, wide_b, ldb, beta, c, ldc);
  free(wide_a);
  free(wide_b);
}

/* A BLAS of three loops for the tests of `bench gemm`, fp32 and bf16, with MKL's packed B. Built with ST_WRONG_BLAS it forgets the last
 * term of each sum; with ST_DYING_BLAS it ends its process. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int threads;

EXPORT void openblas_set_num_threads(int wanted) { threads = wanted; }
EXPORT void MKL_Set_Num_Threads(int wanted) { threads = wanted; }

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

EXPORT void cblas_gemm_bf16bf16f32(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const uint16_t* a, int lda,
                                   const uint16_t* b, int ldb, float beta, float* c, int ldc) {
  cblas_sbgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* The packed B is a copy of B, preceded by a word that says whether it is the transpose. */
enum { kPacked = 151, kMatrixB = 162, kHead = 64 };

EXPORT size_t cblas_sgemm_pack_get_size(int which, int m, int n, int k) {
  return which == kMatrixB && m > 0 ? kHead + sizeof(float) * (size_t)n * (size_t)k : 0;
}
EXPORT void cblas_sgemm_pack(int order, int which, int trans, int m, int n, int k, float alpha, const float* from, int ld, char* to) {
  if (order != 101 || alpha != 1 || ld != (trans == 112 ? k : n)) abort();
  memcpy(to, &trans, sizeof trans);
  memcpy(to + kHead, from, cblas_sgemm_pack_get_size(which, m, n, k) - kHead);
}
EXPORT void cblas_sgemm_compute(int order, int trans_a, int trans_b, int m, int n, int k, const float* a, int lda, const char* b, int ldb,
                                float beta, float* c, int ldc) {
  int trans;
  memcpy(&trans, b, sizeof trans);
  if (trans_b != kPacked || ldb != (trans == 112 ? k : n)) abort();
  cblas_sgemm(order, trans_a, trans, m, n, k, 1, a, lda, (const float*)(b + kHead), ldb, beta, c, ldc);
}

EXPORT size_t cblas_gemm_bf16bf16f32_pack_get_size(int which, int m, int n, int k) {
  return which == kMatrixB && m > 0 ? kHead + sizeof(uint16_t) * (size_t)n * (size_t)k : 0;
}
EXPORT void cblas_gemm_bf16bf16f32_pack(int order, int which, int trans, int m, int n, int k, const uint16_t* from, int ld, char* to) {
  if (order != 101 || ld != (trans == 112 ? k : n)) abort();
  memcpy(to, &trans, sizeof trans);
  memcpy(to + kHead, from, cblas_gemm_bf16bf16f32_pack_get_size(which, m, n, k) - kHead);
}
EXPORT void cblas_gemm_bf16bf16f32_compute(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const uint16_t* a,
                                           int lda, const char* b, int ldb, float beta, float* c, int ldc) {
  int trans;
  memcpy(&trans, b, sizeof trans);
  if (trans_b != kPacked) abort();
  cblas_sbgemm(order, trans_a, trans, m, n, k, alpha, a, lda, (const uint16_t*)(b + kHead), ldb, beta, c, ldc);
}

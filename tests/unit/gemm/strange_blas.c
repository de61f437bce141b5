/* A library of three loops for the tests of --gemm-library, which can pass for OpenBLAS, MKL or oneDNN. Its products are right only
 * while it is limited to one thread. ST_BETALESS: ignores beta. ST_LOSSY: omits the last term of long sums. ST_BUSY: has four threads
 * when it is loaded. ST_SYCL: as oneDNN, its threads are SYCL's. ST_NAMELESS: has no product. */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef ST_BUSY
static int openblas_threads = 4;
#else
static int openblas_threads = 2;
#endif
static _Thread_local int mkl_threads, omp_threads = 5;
static int sequential;

EXPORT void openblas_set_num_threads(int wanted) { openblas_threads = wanted; }
EXPORT int openblas_get_num_threads(void) { return openblas_threads; }
EXPORT const char* openblas_get_config(void) { return "OpenBLAS 0.0.1 OF_TESTS"; }
EXPORT const char* openblas_get_corename(void) { return "Three Loops/1"; }

EXPORT int MKL_Set_Num_Threads_Local(int wanted) {
  const int before = mkl_threads;
  mkl_threads = wanted;
  return before;
}
EXPORT int MKL_Set_Threading_Layer(int layer) { return sequential = layer; }
struct version {
  int major, minor, update;
  const char *status, *build, *processor, *platform;
};
EXPORT void MKL_Get_Version(struct version* version) { version->major = 1999, version->minor = 2, version->update = 3; }

EXPORT void omp_set_num_threads(int wanted) { omp_threads = wanted; }
EXPORT int omp_get_max_threads(void) { return omp_threads; }

struct dnnl_version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};
EXPORT const struct dnnl_version* dnnl_version(void) {
#ifdef ST_SYCL
  static const struct dnnl_version version = {9, 8, 7, "", 512, 0};
#else
  static const struct dnnl_version version = {9, 8, 7, "", 2, 0};
#endif
  return &version;
}

#ifndef ST_NAMELESS
static void multiply(int on_one_thread, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                     const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  int64_t length = k;
#ifdef ST_LOSSY
  if (k > 100) --length;
#endif
  if (!on_one_thread || lda < (trans_a ? m : k) || ldb < (trans_b ? k : n) || ldc < n) return;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < length; ++p) sum += (trans_a ? a[p * lda + i] : a[i * lda + p]) * (trans_b ? b[j * ldb + p] : b[p * ldb + j]);
      float* element = c + i * ldc + j;
#ifdef ST_BETALESS
      beta = 0;
#endif
      *element = beta == 0 ? alpha * sum : alpha * sum + beta * *element;
    }
}

EXPORT void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
                        int ldb, float beta, float* c, int ldc) {
  multiply(order == 101 && openblas_threads == 1, trans_a == 112, trans_b == 112, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
EXPORT void cblas_sgemm_64(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                           const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  multiply(order == 101 && mkl_threads == 1 && sequential == 1, trans_a == 112, trans_b == 112, m, n, k, alpha, a, lda, b, ldb, beta, c,
           ldc);
}
EXPORT int dnnl_sgemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda, const float* b,
                      int64_t ldb, float beta, float* c, int64_t ldc) {
  multiply(omp_threads == 1, trans_a == 'T', trans_b == 'T', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  return 0;
}
#endif

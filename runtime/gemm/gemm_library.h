// A third-party library that multiplies fp32 matrices, opened at run time and only on request: OpenBLAS, MKL, oneDNN. Never linked, never
// required. Its sums may differ from ours in the last bits.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/loaded_library.h"
#include "gemm/problem.h"

namespace st {

/// A or B of a library call: rows `stride` elements apart, or the transpose of such a matrix.
struct LibraryFactor {
  const float* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

class GemmLibrary {
 public:
  /// `name`: openblas, mkl or onednn; `file` as for LoadedLibrary. Throws unavailable with the reason: it cannot be loaded, is another
  /// library, is already set up differently in this process, or multiplies a small example wrongly.
  GemmLibrary(std::string_view name, const std::string& file);

  /// Name, version and, if the library reports it, its kernels: "openblas-0.3.21-SkylakeX". One word; its bits depend on nothing else.
  const std::string& identity() const { return identity_; }
  const std::string& file() const { return library_.name(); }

  /// C [m, n] = alpha A B + beta C on this thread only, whatever number of threads the library uses for others. Rows of C are `row`
  /// elements apart. All sizes are at least 1.
  void multiply(int64_t m, int64_t n, int64_t k, float alpha, const LibraryFactor& a, const LibraryFactor& b, float beta, float* c,
                int64_t row) const;

 private:
  template <class Integer>
  using Cblas = void (*)(int order, int trans_a, int trans_b, Integer m, Integer n, Integer k, float alpha, const float* a, Integer lda,
                         const float* b, Integer ldb, float beta, float* c, Integer ldc);
  using Dnnl = int (*)(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                       const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
  class OneThread;
  std::string open_openblas();
  std::string open_mkl();
  std::string open_onednn();
  bool multiplies_correctly() const;

  os::LoadedLibrary library_;
  Cblas<int> cblas_ = nullptr;
  Cblas<int64_t> cblas64_ = nullptr;
  Dnnl dnnl_ = nullptr;
  int (*mkl_threads_)(int) = nullptr;    // of the calling thread; returns the previous value
  int (*openblas_threads_)() = nullptr;  // process-wide
  void (*set_openblas_threads_)(int) = nullptr;
  void (*set_omp_threads_)(int) = nullptr;
  int (*omp_threads_)() = nullptr;
  std::string identity_;
};

/// Whether a library can compute this product (as_run()): fp32, each matrix with unit row or column stride.
bool library_multiplies(const GemmProblem& problem);

/// The libraries found by this process; kept until it ends.
struct GemmLibraries {
  std::vector<std::unique_ptr<const GemmLibrary>> found;
  std::vector<std::string> absent;  // reasons: "mkl: libmkl_rt.so.3: ..."
};

/// Searches once, at the first call: only the file named in SCALETRAIN_OPENBLAS, SCALETRAIN_MKL, SCALETRAIN_ONEDNN_OPENMP or
/// SCALETRAIN_ONEDNN, else the usual names.
const GemmLibraries& gemm_libraries();

/// The library of this identity. Throws unavailable if it was not found.
const GemmLibrary& gemm_library_of(std::string_view identity);

}  // namespace st

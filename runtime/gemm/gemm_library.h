// A library of others that multiplies fp32 matrices, opened while we run and only when somebody asked for it: OpenBLAS, MKL, oneDNN. Never
// linked, never required; what its sums look like to the bit is its own matter.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/loaded_library.h"
#include "gemm/problem.h"

namespace st {

/// A or B of a library's call: rows `stride` elements apart, or the transpose of such a matrix.
struct LibraryFactor {
  const float* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

class GemmLibrary {
 public:
  /// `name`: openblas, mkl or onednn; `file` as LoadedLibrary has it. Throws unavailable with the reason: it does not load, is not such a
  /// library, is set up for others in this process, or multiplies a few small numbers wrongly.
  GemmLibrary(std::string_view name, const std::string& file);

  /// Name, version and, where the library says it, its kernels: "openblas-0.3.21-SkylakeX". One word: what its bits depend on.
  const std::string& identity() const { return identity_; }
  const std::string& file() const { return library_.name(); }

  /// C [m, n] = alpha A B + beta C on this thread alone, whatever number of threads the library has for others; rows of C `row` elements
  /// apart. All sizes at least 1.
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
  bool multiplies_rightly() const;

  os::LoadedLibrary library_;
  Cblas<int> cblas_ = nullptr;
  Cblas<int64_t> cblas64_ = nullptr;
  Dnnl dnnl_ = nullptr;
  int (*mkl_threads_)(int) = nullptr;    // of the calling thread; returns what was set before
  int (*openblas_threads_)() = nullptr;  // of the process
  void (*set_openblas_threads_)(int) = nullptr;
  void (*set_omp_threads_)(int) = nullptr;
  int (*omp_threads_)() = nullptr;
  std::string identity_;
};

/// Whether a library's call can have this product (as_run()): fp32, each matrix with unit rows or columns.
bool library_multiplies(const GemmProblem& problem);

/// All that this process has found, for as long as it lives.
struct GemmLibraries {
  std::vector<std::unique_ptr<const GemmLibrary>> found;
  std::vector<std::string> absent;  // "mkl: libmkl_rt.so.3: ...": why one is not among them
};

/// Looked for once, when first called: the file named in SCALETRAIN_OPENBLAS, SCALETRAIN_MKL, SCALETRAIN_ONEDNN_OPENMP or
/// SCALETRAIN_ONEDNN and no other, else the usual names.
const GemmLibraries& gemm_libraries();

/// Of those found. Throws unavailable where there is none of this identity.
const GemmLibrary& gemm_library_of(std::string_view identity);

}  // namespace st

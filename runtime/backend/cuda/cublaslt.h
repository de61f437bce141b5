// NVIDIA's cuBLASLt, libcublasLt.so.13: the functions that we call, found at run time. Without it products have our kernels alone.
#pragma once

#include <cublasLt.h>

#include "base/os/loaded_library.h"

namespace st::cuda {

#define ST_CUBLASLT_FUNCTIONS(ROW)          \
  ROW(cublasLtCreate)                       \
  ROW(cublasLtDestroy)                      \
  ROW(cublasLtGetStatusName)                \
  ROW(cublasLtMatmul)                       \
  ROW(cublasLtMatmulAlgoGetHeuristic)       \
  ROW(cublasLtMatmulDescCreate)             \
  ROW(cublasLtMatmulDescDestroy)            \
  ROW(cublasLtMatmulDescSetAttribute)       \
  ROW(cublasLtMatmulPreferenceCreate)       \
  ROW(cublasLtMatmulPreferenceDestroy)      \
  ROW(cublasLtMatmulPreferenceSetAttribute) \
  ROW(cublasLtMatrixLayoutCreate)           \
  ROW(cublasLtMatrixLayoutDestroy)

struct CublasLt {
#define ST_MEMBER(function) decltype(&::function) function = nullptr;
  ST_CUBLASLT_FUNCTIONS(ST_MEMBER)
#undef ST_MEMBER
  size_t version = 0;  // 130100 is 13.1.0

  /// Throws with the function and the library's name of the error: out_of_memory, unavailable for a library that could not start, or
  /// internal.
  void must(cublasStatus_t status, const char* called) const;
};

/// Finds it (vendor_library.h). Throws unavailable with one line: where it was looked for, another major version, a function that it lacks.
CublasLt load_cublaslt();
/// The functions of an open library; throws likewise.
CublasLt cublaslt_of(const os::LoadedLibrary& library);

/// "13.1.0" of 130100.
std::string cublaslt_version_text(size_t version);

/// cuBLASLt's state on the device that is current when it is made, of which it takes 2 MiB.
class CublasLtHandle {
 public:
  explicit CublasLtHandle(const CublasLt& library);
  ~CublasLtHandle();
  CublasLtHandle(const CublasLtHandle&) = delete;
  CublasLtHandle& operator=(const CublasLtHandle&) = delete;

  operator cublasLtHandle_t() const { return handle_; }

 private:
  const CublasLt& library_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace st::cuda

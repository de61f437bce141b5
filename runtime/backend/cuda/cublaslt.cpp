#include "backend/cuda/cublaslt.h"

#include "backend/cuda/vendor_library.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/text.h"

namespace st::cuda {
namespace {

constexpr int kCublasLtMajor = CUBLAS_VER_MAJOR, kPerMajor = 10000, kPerMinor = 100;
constexpr std::string_view kGetCublasLt = "install it with pip install nvidia-cublas, or the CUDA toolkit 13";
constexpr VendorLibrary kCublasLt = {"cuBLASLt", "libcublasLt.so", kCublasLtMajor, true, kGetCublasLt};

}  // namespace

void CublasLt::must(cublasStatus_t status, const char* called) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  // A handle is also not initialized where the device has no memory for it.
  const bool has_none = status == CUBLAS_STATUS_ALLOC_FAILED, may_have_none = status == CUBLAS_STATUS_NOT_INITIALIZED;
  fail(has_none        ? Code::out_of_memory
       : may_have_none ? Code::unavailable
                       : Code::internal,
       text("cuda: ", called, " returned ", static_cast<int>(status), " (", cublasLtGetStatusName(status), ")",
            has_none || may_have_none ? "; the device may have no memory left, nvidia-smi lists the programs that use it" : ""));
}

std::string cublaslt_version_text(size_t version) {
  return text(version / kPerMajor, ".", version % kPerMajor / kPerMinor, ".", version % kPerMinor);
}

CublasLt cublaslt_of(const os::LoadedLibrary& library) {
  CublasLt made;
  const auto fill = [&](auto& function, const char* name) {
    library.fill(function, name, "cuBLASLt that this plug-in knows", kGetCublasLt);
  };
  decltype(&::cublasLtGetVersion) version_of = nullptr;
  fill(version_of, "cublasLtGetVersion");
  made.version = version_of();
  require(made.version / kPerMajor == kCublasLtMajor, Code::unavailable, library.name(), " is cuBLASLt ",
          cublaslt_version_text(made.version), ", and ", kCublasLtMajor, " is needed; ", kGetCublasLt);
#define ST_FILL(function) fill(made.function, #function);
  ST_CUBLASLT_FUNCTIONS(ST_FILL)
#undef ST_FILL
  return made;
}

CublasLt load_cublaslt() {
  const HostsFloatMode mode;  // for threads that it starts
  return cublaslt_of(open_vendor_library(kCublasLt));
}

CublasLtHandle::CublasLtHandle(const CublasLt& library) : library_(library) {
  library_.must(library_.cublasLtCreate(&handle_), "cublasLtCreate");
}

CublasLtHandle::~CublasLtHandle() { library_.cublasLtDestroy(handle_); }

}  // namespace st::cuda

#include "cblas_gemm.h"

#include <array>

namespace cli {
namespace {

// Newest first. scipy_openblas32 is a wheel of the OpenBLAS project's; its names have a prefix.
constexpr std::array kOpenblas = {"libscipy_openblas.so", "libopenblas.so.0", "libopenblas.so"};
constexpr std::array kBlis = {"libblis-mt.so.4", "libblis-mt.so", "libblis.so.4", "libblis.so"};
constexpr std::array kMkl = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"};

// Of cblas.h and MKL's.
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112, kPackedB = 151, kMatrixB = 162;

SharedLibrary library_of(const std::string& name) {
  if (name == "openblas") return {"SCALETRAIN_OPENBLAS", kOpenblas};
  if (name == "blis") return {"SCALETRAIN_BLIS", kBlis};
  return {"SCALETRAIN_MKL", kMkl};
}

template <class Integer>
void set_threads(const SharedLibrary& library, const char* function, int64_t threads) {
  if (const auto set = library.find<void (*)(Integer)>(function)) set(static_cast<Integer>(threads));
}

int trans(bool transposed) { return transposed ? kTrans : kNoTrans; }

}  // namespace

CblasGemm::CblasGemm(const std::string& name, int64_t threads) : library_(library_of(name)) {
  sgemm_ = library_.find<Sgemm>("scipy_cblas_sgemm");
  if (sgemm_ == nullptr) sgemm_ = library_.need<Sgemm>("cblas_sgemm");
  if (name == "openblas") {
    set_threads<int>(library_, "scipy_openblas_set_num_threads", threads);
    set_threads<int>(library_, "openblas_set_num_threads", threads);
  } else if (name == "blis") {
    set_threads<int64_t>(library_, "bli_thread_set_num_threads", threads);
  } else {
    set_threads<int>(library_, "MKL_Set_Dynamic", 0);
    set_threads<int>(library_, "MKL_Set_Num_Threads", threads);
    packed_size_ = library_.find<PackedSize>("cblas_sgemm_pack_get_size");
    if (packed_size_ != nullptr) pack_ = library_.need<Pack>("cblas_sgemm_pack"), compute_ = library_.need<Compute>("cblas_sgemm_compute");
  }
}

void CblasGemm::pack() {
  const GemmShape& s = operands_->shape();
  const int m = int(s.m), n = int(s.n), k = int(s.k);
  packed_.resize(packed_size_(kMatrixB, m, n, k) / sizeof(float) + 1);
  pack_(kRowMajor, kMatrixB, trans(s.transposed_b), m, n, k, 1, operands_->b(), int(operands_->b_row()), packed_.data());
}

void CblasGemm::multiply(bool packed) {
  const GemmShape& s = operands_->shape();
  const int m = int(s.m), n = int(s.n), k = int(s.k), lda = int(operands_->a_row()), ldb = int(operands_->b_row());
  if (packed)
    compute_(kRowMajor, trans(s.transposed_a), kPackedB, m, n, k, operands_->a(), lda, packed_.data(), ldb, 0, operands_->c(), n);
  else
    sgemm_(kRowMajor, trans(s.transposed_a), trans(s.transposed_b), m, n, k, 1, operands_->a(), lda, operands_->b(), ldb, 0, operands_->c(),
           n);
}

}  // namespace cli

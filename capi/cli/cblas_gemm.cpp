#include "cblas_gemm.h"

#include <array>

namespace cli {
namespace {

// Newest first. scipy_openblas32 is a wheel of the OpenBLAS project; its functions have a prefix.
constexpr std::array kOpenblas = {"libscipy_openblas.so", "libopenblas.so.0", "libopenblas.so"};
constexpr std::array kBlis = {"libblis-mt.so.4", "libblis-mt.so", "libblis.so.4", "libblis.so"};
constexpr std::array kMkl = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"};

// Constants of cblas.h and MKL.
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
  auto& [fp32, bf16, fp16] = products_;
  fp32.gemm = library_.find<Gemm>("scipy_cblas_sgemm");
  if (fp32.gemm == nullptr) fp32.gemm = library_.need<Gemm>("cblas_sgemm");
  if (name == "openblas") {
    set_threads<int>(library_, "scipy_openblas_set_num_threads", threads);
    set_threads<int>(library_, "openblas_set_num_threads", threads);
    bf16.gemm = library_.find<Gemm>("scipy_cblas_sbgemm");  // in builds with BUILD_BFLOAT16
    if (bf16.gemm == nullptr) bf16.gemm = library_.find<Gemm>("cblas_sbgemm");
  } else if (name == "blis") {
    set_threads<int64_t>(library_, "bli_thread_set_num_threads", threads);
  } else {
    set_threads<int>(library_, "MKL_Set_Dynamic", 0);
    set_threads<int>(library_, "MKL_Set_Num_Threads", threads);
    bf16.gemm = library_.find<Gemm>("cblas_gemm_bf16bf16f32");
    fp16.gemm = library_.find<Gemm>("cblas_gemm_f16f16f32");
    find_packed(fp32, "cblas_sgemm", false);
    find_packed(bf16, "cblas_gemm_bf16bf16f32", true);
    find_packed(fp16, "cblas_gemm_f16f16f32", true);
  }
}

void CblasGemm::find_packed(Product& product, const std::string& name, bool sixteen) const {
  product.packed_size = library_.find<PackedSize>((name + "_pack_get_size").c_str());
  if (product.packed_size == nullptr) return;
  const std::string pack = name + "_pack", compute = name + "_compute";
  if (sixteen)
    product.pack16 = library_.need<Pack16>(pack.c_str()), product.compute16 = library_.need<Compute16>(compute.c_str());
  else
    product.pack = library_.need<Pack>(pack.c_str()), product.compute = library_.need<Compute>(compute.c_str());
}

bool CblasGemm::open(const GemmOperands& operands) {
  operands_ = &operands;
  product_ = &products_[static_cast<size_t>(operands.shape().element)];
  return product_->gemm != nullptr;
}

void CblasGemm::pack() {
  const GemmShape& s = operands_->shape();
  const int m = int(s.m), n = int(s.n), k = int(s.k), ldb = int(operands_->b_row());
  if (const size_t bytes = product_->packed_size(kMatrixB, m, n, k); bytes != packed_bytes_)
    packed_ = GemmOperands::allocate(static_cast<int64_t>(bytes)), packed_bytes_ = bytes;
  if (product_->pack16 != nullptr)
    product_->pack16(kRowMajor, kMatrixB, trans(s.transposed_b), m, n, k, operands_->b(), ldb, packed_.get());
  else
    product_->pack(kRowMajor, kMatrixB, trans(s.transposed_b), m, n, k, 1, operands_->b(), ldb, packed_.get());
}

void CblasGemm::multiply(bool packed) {
  const GemmShape& s = operands_->shape();
  const int m = int(s.m), n = int(s.n), k = int(s.k), lda = int(operands_->a_row()), ldb = int(operands_->b_row());
  const int trans_a = trans(s.transposed_a);
  if (!packed)
    product_->gemm(kRowMajor, trans_a, trans(s.transposed_b), m, n, k, 1, operands_->a(), lda, operands_->b(), ldb, 0, operands_->c(), n);
  else if (product_->compute16 != nullptr)
    product_->compute16(kRowMajor, trans_a, kPackedB, m, n, k, 1, operands_->a(), lda, packed_.get(), ldb, 0, operands_->c(), n);
  else
    product_->compute(kRowMajor, trans_a, kPackedB, m, n, k, operands_->a(), lda, packed_.get(), ldb, 0, operands_->c(), n);
}

}  // namespace cli

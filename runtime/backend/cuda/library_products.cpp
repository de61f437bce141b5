#include "backend/cuda/library_products.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/text.h"

namespace st::cuda {
namespace {

constexpr uint32_t kAlignment = 16;  // bytes, of all operands

cudaDataType_t type_of(DType dtype) { return dtype == DType::f32 ? CUDA_R_32F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F; }

/// One of cuBLASLt's objects while its attributes are set, and its value when it goes.
template <class Object>
class Built {
 public:
  using Destroy = cublasStatus_t (*)(Object*);
  explicit Built(Destroy destroy) : destroy_(destroy) {}
  ~Built() {
    if (object_ != nullptr) destroy_(object_);
  }
  Built(const Built&) = delete;
  Built& operator=(const Built&) = delete;

  Object** made() { return &object_; }
  Object* get() const { return object_; }

 private:
  Destroy destroy_;
  Object* object_ = nullptr;
};

cublasLtMatrixLayoutOpaque_t layout_of(const CublasLt& library, DType dtype, int64_t rows, int64_t columns) {
  Built<cublasLtMatrixLayoutOpaque_t> layout(library.cublasLtMatrixLayoutDestroy);
  library.must(
      library.cublasLtMatrixLayoutCreate(layout.made(), type_of(dtype), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
      "cublasLtMatrixLayoutCreate");
  return *layout.get();
}

template <class Value>
void set(const CublasLt& library, cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which, const Value& value) {
  library.must(library.cublasLtMatmulDescSetAttribute(description, which, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}

}  // namespace

// Matrices of cuBLASLt are by columns, so that it computes C^T = op(B)^T op(A)^T: its A is our B.
std::unique_ptr<CublasLtProduct> CublasLtProduct::make(const CublasLt& library, cublasLtHandle_t handle, const ProductKey& key,
                                                       int algorithm) {
  std::unique_ptr<CublasLtProduct> made(new CublasLtProduct(library, handle));
  made->has_bias_ = key.bias;
  {
    Built<cublasLtMatmulDescOpaque_t> description(library.cublasLtMatmulDescDestroy);
    library.must(library.cublasLtMatmulDescCreate(description.made(), CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    set(library, description.get(), CUBLASLT_MATMUL_DESC_TRANSA, key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(library, description.get(), CUBLASLT_MATMUL_DESC_TRANSB, key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(library, description.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, key.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
    made->description_ = *description.get();
  }
  made->a_ = key.transpose_b ? layout_of(library, key.in, key.k, key.n) : layout_of(library, key.in, key.n, key.k);
  made->b_ = key.transpose_a ? layout_of(library, key.in, key.m, key.k) : layout_of(library, key.in, key.k, key.m);
  made->c_ = layout_of(library, key.out, key.n, key.m);

  Built<cublasLtMatmulPreferenceOpaque_t> preference(library.cublasLtMatmulPreferenceDestroy);
  library.must(library.cublasLtMatmulPreferenceCreate(preference.made()), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    library.must(library.cublasLtMatmulPreferenceSetAttribute(preference.get(), which, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kLibraryWorkspace});
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
  for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(which, kAlignment);
  if (key.in == DType::f32)  // an environment variable of NVIDIA's may ask for others
    prefer(CUBLASLT_MATMUL_PREF_IMPL_MASK, uint64_t{CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F |
                                                    CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F});
  std::array<cublasLtMatmulHeuristicResult_t, kMostAlgorithms> found;
  int count = 0;
  const cublasStatus_t status = library.cublasLtMatmulAlgoGetHeuristic(handle, &made->description_, &made->a_, &made->b_, &made->c_,
                                                                       &made->c_, preference.get(), kMostAlgorithms, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return nullptr;
  library.must(status, "cublasLtMatmulAlgoGetHeuristic");
  const auto wanted = static_cast<size_t>(algorithm);
  if (algorithm >= count || found[wanted].state != CUBLAS_STATUS_SUCCESS || found[wanted].workspaceSize > uint64_t{kLibraryWorkspace})
    return nullptr;
  made->algorithm_ = found[wanted].algo;
  return made;
}

void CublasLtProduct::enqueue(CUstream_st* stream, const ProductOperands& operands) const {
  require(reinterpret_cast<uintptr_t>(operands.workspace) % kLibraryAlignment == 0, Code::internal, "cublasLtMatmul: a workspace at ",
          operands.workspace, ", no multiple of ", kLibraryAlignment);
  cublasLtMatmulDescOpaque_t description = description_;
  cublasLtMatrixLayoutOpaque_t a = a_, b = b_, c = c_;
  if (has_bias_) set(library_, &description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  library_.must(library_.cublasLtMatmul(handle_, &description, &operands.alpha, operands.b, &a, operands.a, &b, &operands.beta, operands.c,
                                        &c, operands.c, &c, &algorithm_, operands.workspace, size_t{kLibraryWorkspace}, stream),
                "cublasLtMatmul");
}

LibraryProducts::LibraryProducts(const std::optional<CublasLt>& library, std::shared_ptr<const ProductTable> table)
    : library_(library), table_(std::move(table)) {
  const HostsFloatMode mode;  // for threads that the library starts
  if (library_) handle_.emplace(*library_);
}

ChosenProduct LibraryProducts::chosen_for(const ProductKey& key) {
  const MeasuredProduct* const measured = table_ == nullptr ? nullptr : table_->find(key);
  if (measured != nullptr && !measured->is_by_library) return {.library = nullptr, .tile = measured->tile};
  if (measured == nullptr && !is_for_library(key)) return {};
  return {.library = made(key, measured == nullptr ? 0 : measured->algorithm), .tile = {}};
}

const LibraryProduct* LibraryProducts::made(const ProductKey& key, int algorithm) {
  if (!library_) return nullptr;
  auto found = made_.find({key, algorithm});
  if (found == made_.end())
    found = made_.emplace(std::pair(key, algorithm), CublasLtProduct::make(*library_, *handle_, key, algorithm)).first;
  return found->second.get();
}

ChosenProduct LibraryProducts::of(const ProductKey& key) {
  const std::lock_guard lock(mutex_);
  auto found = chosen_.find(key);
  if (found == chosen_.end()) found = chosen_.emplace(key, chosen_for(key)).first;
  return found->second;
}

const LibraryProduct* LibraryProducts::by_library(const ProductKey& key, int algorithm) {
  const std::lock_guard lock(mutex_);
  return made(key, algorithm);
}

std::optional<CublasLt> cublaslt_if_there(CublasLt (*load)(), std::string& why_none) {
  try {
    return load();
  } catch (const Error& error) {
    if (error.code() != Code::unavailable) throw;
    why_none = text("products have our kernels alone: ", error.message());
    return std::nullopt;
  }
}

ProductMeans::ProductMeans(std::string_view device, const std::optional<CublasLt>& of_process)
    : library(of_process), table(product_table_of_environment(device, library ? library->version : 0)) {}

std::string ProductMeans::kernel_class() const {
  return text("cublasLt=", library ? text(library->version, ",", kLibraryWorkspace) : "none", " table=", table ? table->hash() : "none");
}

std::string kernel_class_of(std::string_view code, std::string_view build, const Driver& driver, const ProductMeans& products) {
  return text("cuda ", code, " own=", build, " ", products.kernel_class(),
              " cudnn=none fp32=ieee jit=", code.starts_with("compute_") ? cuda_version_text(driver.version) : "none");
}

std::unique_ptr<ProductChoices> ProductMeans::choices() const {
  if (!library && table == nullptr) return nullptr;
  return std::make_unique<LibraryProducts>(library, table);
}

}  // namespace st::cuda

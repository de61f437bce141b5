// cuBLASLt through a table that dlopen fills, and one product of it: description, heuristics, run. Matrices are cuBLASLt's: by columns.
#pragma once
#include <cublasLt.h>
#include <dlfcn.h>

#include "probe.h"

namespace probe {

struct CublasLt {
// clang-format off
#define ST_LT_FUNCTIONS(F) \
  F(Create) F(GetVersion) F(Matmul) F(MatmulDescCreate) F(MatmulDescDestroy) F(MatmulDescSetAttribute) F(MatrixLayoutCreate) \
  F(MatrixLayoutDestroy) F(MatmulPreferenceCreate) F(MatmulPreferenceDestroy) F(MatmulPreferenceSetAttribute) F(MatmulAlgoGetHeuristic) \
  F(MatmulAlgoConfigGetAttribute)
// clang-format on
#define ST_LT_MEMBER(name) decltype(&::cublasLt##name) name = nullptr;
  ST_LT_FUNCTIONS(ST_LT_MEMBER)
  cublasLtHandle_t handle = nullptr;
  CublasLt() {
    void* library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::printf("{\"error\":\"%s\"}\n", dlerror());
      std::exit(1);
    }
#define ST_LT_FIND(name) name = reinterpret_cast<decltype(name)>(dlsym(library, "cublasLt" #name));
    ST_LT_FUNCTIONS(ST_LT_FIND)
    MUST(Create(&handle));
  }
};

/// D [m][n] = op(A) op(B) (+ beta D), leading dimensions `pad` beyond the least (or, if negative, rounded up to a multiple of -pad).
struct Problem {
  std::string dtype;  // "f32" (IEEE), "tf32", "bf16", "bf16f" (bf16 operands, fp32 result)
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float beta = 0;
  int64_t pad = 0;
  uint32_t alignment = 256;
  uint64_t workspace = 32 << 20;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE;  // split-K that adds in memory: masked off

  bool narrow() const { return dtype[0] == 'b'; }
  size_t operand_bytes() const { return narrow() ? 2 : 4; }
  size_t result_bytes() const { return dtype == "bf16" ? 2 : 4; }
  int64_t stride(int64_t rows) const { return pad < 0 ? (rows - pad - 1) / -pad * -pad : rows + pad; }
  int64_t lda() const { return stride(transpose_a ? k : m); }
  int64_t ldb() const { return stride(transpose_b ? n : k); }
  int64_t ldd() const { return stride(m); }
  size_t a_bytes() const { return size_t(lda() * (transpose_a ? m : k)) * operand_bytes(); }
  size_t b_bytes() const { return size_t(ldb() * (transpose_b ? k : n)) * operand_bytes(); }
  size_t d_bytes() const { return size_t(ldd() * n) * result_bytes(); }
  double flop() const { return 2.0 * double(m) * double(n) * double(k); }
  std::string letters() const { return std::string(transpose_a ? "T" : "N") + (transpose_b ? "T" : "N"); }
};

inline const char* name_of(cublasLtEpilogue_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
      return "none";
    case CUBLASLT_EPILOGUE_BIAS:
      return "bias";
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      return "gelu_aux_bias";
    case CUBLASLT_EPILOGUE_BGRADA:
      return "bgrada";
    case CUBLASLT_EPILOGUE_BGRADB:
      return "bgradb";
    case CUBLASLT_EPILOGUE_DGELU:
      return "dgelu";
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
      return "dgelu_bgrad";
    default:
      return "other";
  }
}

/// cuBLASLt's struct has no name, which nvcc 13.0 with GCC 12 does not survive in a vector.
struct Found : cublasLtMatmulHeuristicResult_t {};

class Product {
 public:
  /// `vector`: the bias or its gradient, `auxiliary`: what GELU keeps; device memory of at least max(m, n) and m n elements if it is to
  /// run.
  Product(const CublasLt& lt, const Problem& p, void* vector, void* auxiliary) : lt_(lt), problem_(p) {
    auto type = p.narrow() ? CUDA_R_16BF : CUDA_R_32F, result = p.dtype == "bf16" ? CUDA_R_16BF : CUDA_R_32F;
    MUST(lt.MatmulDescCreate(&operation_, p.dtype == "tf32" ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    auto set = [&](cublasLtMatmulDescAttributes_t what, const auto& value) {
      MUST(lt.MatmulDescSetAttribute(operation_, what, &value, sizeof value));
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
    if (p.epilogue != CUBLASLT_EPILOGUE_DEFAULT && p.epilogue != CUBLASLT_EPILOGUE_DGELU) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
    if (p.epilogue & 128) {  // GELU_AUX and DGELU
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, auxiliary);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (p.m + 7) / 8 * 8);
    }
    MUST(lt.MatrixLayoutCreate(&a_, type, uint64_t(p.transpose_a ? p.k : p.m), uint64_t(p.transpose_a ? p.m : p.k), p.lda()));
    MUST(lt.MatrixLayoutCreate(&b_, type, uint64_t(p.transpose_b ? p.n : p.k), uint64_t(p.transpose_b ? p.k : p.n), p.ldb()));
    MUST(lt.MatrixLayoutCreate(&d_, result, uint64_t(p.m), uint64_t(p.n), p.ldd()));
  }
  Product(const Product&) = delete;
  ~Product() { lt_.MatrixLayoutDestroy(a_), lt_.MatrixLayoutDestroy(b_), lt_.MatrixLayoutDestroy(d_), lt_.MatmulDescDestroy(operation_); }

  /// Fills `found` with at most `most` algorithms; returns cuBLAS's status.
  cublasStatus_t heuristics(int most, std::vector<Found>& found) const {
    cublasLtMatmulPreference_t preference;
    MUST(lt_.MatmulPreferenceCreate(&preference));
    auto set = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
      MUST(lt_.MatmulPreferenceSetAttribute(preference, what, &value, sizeof value));
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, problem_.workspace);
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, problem_.reductions);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem_.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem_.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem_.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem_.alignment);
    int count = 0;
    found.resize(size_t(most));
    auto status = lt_.MatmulAlgoGetHeuristic(lt_.handle, operation_, a_, b_, d_, d_, preference, most, found.data(), &count);
    found.resize(status == CUBLAS_STATUS_SUCCESS ? size_t(count) : 0);
    MUST(lt_.MatmulPreferenceDestroy(preference));
    return status;
  }

  cublasStatus_t run(const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b, void* d, void* workspace,
                     cudaStream_t stream) const {
    float one = 1;
    return lt_.Matmul(lt_.handle, operation_, &one, a, a_, b, b_, &problem_.beta, d, d_, d, d_, &algorithm, workspace, problem_.workspace,
                      stream);
  }

  /// {algorithm, tile, stages, split-K, reduction scheme, cluster shape}
  std::vector<int> configuration(const cublasLtMatmulAlgo_t& algorithm) const {
    std::vector<int> values;
    for (auto which : {CUBLASLT_ALGO_CONFIG_ID, CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_STAGES_ID,
                       CUBLASLT_ALGO_CONFIG_SPLITK_NUM, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID}) {
      uint64_t value = 0;
      size_t written = 0;
      bool known = lt_.MatmulAlgoConfigGetAttribute(&algorithm, which, &value, which == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID ? 2 : 4,
                                                    &written) == 0;
      values.push_back(known ? int(value) : -1);
    }
    return values;
  }

 private:
  const CublasLt& lt_;
  Problem problem_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

}  // namespace probe

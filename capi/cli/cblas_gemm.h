// OpenBLAS, BLIS and MKL as sides of `bench gemm`: they share the interface of CBLAS, 32-bit integers, row-major.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm_engine.h"
#include "shared_library.h"

namespace cli {

class CblasGemm : public GemmEngine {
 public:
  /// `name` is openblas, blis or mkl. Throws std::runtime_error when the library is not there.
  CblasGemm(const std::string& name, int64_t threads);

  void open(const GemmOperands& operands) override { operands_ = &operands; }
  /// MKL alone.
  bool packs() const override { return packed_size_ != nullptr; }
  void pack() override;
  void multiply(bool packed) override;

 private:
  using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
                         int ldb, float beta, float* c, int ldc);
  using PackedSize = size_t (*)(int which, int m, int n, int k);
  using Pack = void (*)(int order, int which, int trans, int m, int n, int k, float alpha, const float* from, int ld, float* to);
  using Compute = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, const float* a, int lda, const float* b, int ldb,
                           float beta, float* c, int ldc);

  SharedLibrary library_;
  Sgemm sgemm_ = nullptr;
  PackedSize packed_size_ = nullptr;
  Pack pack_ = nullptr;
  Compute compute_ = nullptr;
  const GemmOperands* operands_ = nullptr;
  std::vector<float> packed_;
};

}  // namespace cli

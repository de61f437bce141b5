// OpenBLAS, BLIS and MKL as sides of `bench gemm`. They share the CBLAS interface: 32-bit integers, row-major.
#pragma once

#include <cstdint>
#include <string>

#include "gemm_engine.h"
#include "shared_library.h"

namespace cli {

class CblasGemm : public GemmEngine {
 public:
  /// `name` is openblas, blis or mkl. Throws std::runtime_error when the library is not there.
  CblasGemm(const std::string& name, int64_t threads);

  bool open(const GemmOperands& operands) override;
  /// Only MKL packs.
  bool packs() const override { return product_->packed_size != nullptr; }
  void pack() override;
  void multiply(bool packed) override;

 private:
  // For every element type. The 16-bit calls differ from sgemm's in one point: alpha is an argument of the product, not of packing.
  using Gemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const void* a, int lda, const void* b,
                        int ldb, float beta, float* c, int ldc);
  using PackedSize = size_t (*)(int which, int m, int n, int k);
  using Pack = void (*)(int order, int which, int trans, int m, int n, int k, float alpha, const void* from, int ld, void* to);
  using Compute = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, const void* a, int lda, const void* b, int ldb,
                           float beta, float* c, int ldc);
  using Pack16 = void (*)(int order, int which, int trans, int m, int n, int k, const void* from, int ld, void* to);
  using Compute16 = Gemm;

  struct Product {
    Gemm gemm = nullptr;
    PackedSize packed_size = nullptr;
    Pack pack = nullptr;
    Compute compute = nullptr;
    Pack16 pack16 = nullptr;
    Compute16 compute16 = nullptr;
  };
  void find_packed(Product& product, const std::string& name, bool sixteen) const;

  SharedLibrary library_;
  Product products_[3];  // by element
  const Product* product_ = products_;
  const GemmOperands* operands_ = nullptr;
  GemmOperands::Matrix packed_;
  size_t packed_bytes_ = 0;
};

}  // namespace cli

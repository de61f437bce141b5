// oneDNN as a side of `bench gemm`: dnnl_sgemm and the matmul primitive of its C API, version 3. Its headers are not needed to build.
#pragma once

#include <initializer_list>

#include "gemm_engine.h"
#include "shared_library.h"

namespace cli {

class OnednnGemm : public GemmEngine {
 public:
  /// `openmp`: a build with OpenMP threads, from .venv/openmp; else the newest, whose engine is SYCL's. Throws std::runtime_error if the
  /// library is missing. The environment sets the number of threads (gemm_peer.cpp). Without an engine only dnnl_sgemm is available.
  explicit OnednnGemm(bool openmp);

  /// For the plain fp32 product, takes the faster of dnnl_sgemm and matmul. 16-bit types use matmul, if the processor supports it.
  bool open(const GemmOperands& operands) override;
  bool packs() const override { return packed_matmul_ != nullptr; }
  void pack() override;
  void multiply(bool packed) override;

 private:
  struct Calls;
  using Owned = std::unique_ptr<void, int (*)(void*)>;
  struct Argument {
    int number;
    void* memory;
  };

  Owned describe(int64_t rows, int64_t columns, int64_t row, bool transposed, int dtype) const;
  Owned memory_of(const void* description, void* data) const;
  Owned primitive_of(void* description) const;
  bool make_matmuls();
  void choose_plain();
  void execute(const Owned& primitive, std::initializer_list<Argument> arguments) const;
  void sgemm() const;

  SharedLibrary library_;
  std::shared_ptr<const Calls> calls_;
  const GemmOperands* operands_ = nullptr;
  void *engine_ = nullptr, *stream_ = nullptr;
  Owned matmul_, packed_matmul_, reorder_;
  Owned a_, b_, c_, packed_b_;
  bool by_sgemm_ = true;
};

}  // namespace cli

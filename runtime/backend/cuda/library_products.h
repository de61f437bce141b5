// Products by cuBLASLt on one device, and the choice between them and our kernels.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backend/cuda/cublaslt.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/product_choice.h"
#include "backend/cuda/product_table.h"

namespace st::cuda {

/// Description, layouts and algorithm of a problem. They are kept as values: cuBLASLt's descriptors are structs without pointers, which may
/// be copied, so that a run writes nothing that others read.
class CublasLtProduct final : public LibraryProduct {
 public:
  /// Null: cuBLASLt offers fewer algorithms than `algorithm` and one, the best guess being 0. Operands of 16 bytes' alignment; sums that
  /// are split along K and added in memory are masked off. Results of fp32 are IEEE: no TF32, no emulation by 16-bit operands.
  static std::unique_ptr<CublasLtProduct> make(const CublasLt& library, cublasLtHandle_t handle, const ProductKey& key, int algorithm);

  void enqueue(CUstream_st* stream, const ProductOperands& operands) const override;

 private:
  CublasLtProduct(const CublasLt& library, cublasLtHandle_t handle) : library_(library), handle_(handle) {}

  const CublasLt& library_;
  cublasLtHandle_t handle_;
  cublasLtMatmulDescOpaque_t description_{};
  cublasLtMatrixLayoutOpaque_t a_{}, b_{}, c_{};
  cublasLtMatmulAlgo_t algorithm_{};
  bool has_bias_ = false;
};

/// A problem's row in the table decides, else is_for_library(). A problem that the library does not take has our kernels.
class LibraryProducts final : public ProductChoices {
 public:
  /// For the current device. `table` may be null, `library` may be missing, and then a table chooses among our tiles.
  LibraryProducts(const std::optional<CublasLt>& library, std::shared_ptr<const ProductTable> table);

  ChosenProduct of(const ProductKey& key) override;
  const LibraryProduct* by_library(const ProductKey& key, int algorithm) override;

 private:
  ChosenProduct chosen_for(const ProductKey& key);
  const LibraryProduct* made(const ProductKey& key, int algorithm);

  const std::optional<CublasLt> library_;
  const std::shared_ptr<const ProductTable> table_;
  std::optional<CublasLtHandle> handle_;
  std::mutex mutex_;
  std::map<ProductKey, ChosenProduct> chosen_;
  std::map<std::pair<ProductKey, int>, std::unique_ptr<LibraryProduct>> made_;
};

/// The library that `load` returns, load_cublaslt() for instance; nothing, and one line that says why, if it throws unavailable.
std::optional<CublasLt> cublaslt_if_there(CublasLt (*load)(), std::string& why_none);

/// The means to compute a device's products: the library, if there is one, and the table of the environment.
struct ProductMeans {
  std::optional<CublasLt> library;
  std::shared_ptr<const ProductTable> table;

  /// Throws as product_table_of_environment() does.
  ProductMeans(std::string_view device, const std::optional<CublasLt>& of_process);

  /// Their part of the kernel class: "cublasLt=130100,1048576 table=0123456789abcdef", each "none" if there is none.
  std::string kernel_class() const;
  /// On the device that is current. Null: neither.
  std::unique_ptr<ProductChoices> choices() const;
};

/// All that bits depend on: the code of the device (DeviceProfile::code_class), the build that has it, the libraries, and the driver where
/// it compiles the code: "cuda sm_90a/132 own=<build> cublasLt=130100,1048576 table=none cudnn=none fp32=ieee jit=none".
std::string kernel_class_of(std::string_view code, std::string_view build, const Driver& driver, const ProductMeans& products);

}  // namespace st::cuda

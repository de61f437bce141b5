// Our side of `bench gemm`: the C ABI's product, with tiles that it chooses or that the caller asks for.
#pragma once

#include "gemm_engine.h"
#include "handle.h"

namespace cli {

class OwnGemm : public GemmEngine {
 public:
  /// Tiles of 0 are chosen by the library. The context outlives this object.
  explicit OwnGemm(const Context& context, int64_t tile_m = 0, int64_t tile_n = 0, int64_t tile_k = 0)
      : context_(context), tile_m_(tile_m), tile_n_(tile_n), tile_k_(tile_k) {}
  /// Before open(): time limit for measuring tiles.
  void set_tune_ms(int32_t tune_ms) { tune_ms_ = tune_ms; }
  /// Before open(): lets other libraries compete.
  void let_libraries_compete() { library_ = ST_GEMM_LIBRARY_AUTO; }

  bool open(const GemmOperands& operands) override;
  bool packs() const override { return true; }
  void pack() override;
  void multiply(bool packed) override;

  /// The tiles in use: chosen, or derived from the caller's.
  st_gemm_info info() const;

 private:
  struct View {
    int64_t dims[2], strides[2];
    st_view view;
    void set(int64_t rows, int64_t columns, int64_t row, bool transposed, void* data, st_dtype dtype);
  };

  const Context& context_;
  int64_t tile_m_, tile_n_, tile_k_;
  int32_t tune_ms_ = 0, library_ = ST_GEMM_LIBRARY_OWN;
  View a_, b_, c_;
  Gemm gemm_;
  Packed packed_;  // destroyed before its plan
};

}  // namespace cli

// A product over the host's arrays on a device of its own memory: a run copies them there and back. Its kernels alone can be measured.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "parts/gemm_choice.h"

namespace st {

class DeviceGemm {
 public:
  /// How kernels are chosen: `tiles` has the rows (mc), columns (nc) and depth (kc) that a tile has at least, 0 being free.
  struct Wish {
    TileSchedule tiles;
    bool lets_libraries = false;  // the device may use a library; measured, or by its own rule
    double seconds = 0;           // to measure for; 0: nothing is measured
  };

  /// Borrows the backend. Measures all kernels that fulfil the wish, and keeps the fastest. Throws unsupported for batches, strides with
  /// gaps and kernels that the device lacks, with shared memory and registers of a tile that is too large; out_of_memory.
  DeviceGemm(Backend& backend, const GemmProblem& problem, const Wish& wish);
  ~DeviceGemm();
  DeviceGemm(const DeviceGemm&) = delete;
  DeviceGemm& operator=(const DeviceGemm&) = delete;

  /// C = A B of the problem's layouts. Throws unsupported for another alpha or beta than 1 and 0, an epilogue, and a packed B.
  void run(const GemmOperands& operands, float alpha, float beta);

  const GemmProblem& problem() const { return problem_; }
  /// The tile that was asked for, or was the fastest; 0: the device's choice.
  const TileSchedule& tiles() const { return kept_.tiles; }
  /// "own", "cublasLt-2", or "chosen" by the device's rule; never freed.
  const char* library() const { return kept_.name; }
  /// flop/s of the kernels alone, when they were measured; 0: they were not.
  double rate() const { return rate_; }

 private:
  struct Kernels {
    TileSchedule tiles;
    const char* name = "own";
  };
  class Prepared;

  double seconds_of(Prepared& prepared, double seconds);
  void keep_fastest(const Wish& wish);
  bool is_there(const Kernels& kernels);
  void consider(const Kernels& kernels, double seconds);

  Backend& backend_;
  GemmProblem problem_;
  std::array<Operand, 2> in_;
  std::array<Operand, 1> out_;
  std::unique_ptr<Buffer> a_, b_, c_, workspace_;
  std::unique_ptr<Stream> stream_;
  Kernels kept_;
  std::unique_ptr<Prepared> prepared_;
  double rate_ = 0;
};

}  // namespace st

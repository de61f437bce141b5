// Random operands of a product to be measured, with its dtypes and strides.
#pragma once

#include <array>
#include <memory>

#include "base/memory_source.h"
#include "gemm/gemm_kernels.h"

namespace st {

class DrawnOperands {
 public:
  /// `compares`: includes memory to keep a second C.
  static int64_t bytes_for(const GemmProblem& problem, bool compares);
  /// Borrows the problem. Throws out_of_memory.
  DrawnOperands(const GemmProblem& problem, bool compares, const std::shared_ptr<MemorySource>& memory);

  /// Fills the inputs with numbers in [-1, 1); C is output only.
  void draw(uint64_t seed, Workers& workers);
  GemmOperands get() const;

  /// Whether two products, each of which writes C, give the same fp32 numbers up to rounding and do not write into gaps between elements.
  template <class One, class Other>
  bool agree(const One& one, const Other& other) {
    forget_c();
    one();
    keep_c();
    forget_c();
    other();
    return is_as_kept();
  }

 private:
  void forget_c();
  void keep_c();
  bool is_as_kept() const;

  const GemmProblem& problem_;
  std::array<Memory, 5> memory_;  // A, B, C, bias, the kept C
};

}  // namespace st

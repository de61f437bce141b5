// The workspace of gradient_norm and of what is made from its sums.
#pragma once

#include <cstdint>

namespace st::cuda {

/// Sums of squares, f64: of each block of 1024 elements, then of each tensor; then two bytes for each block and for each tensor, which are
/// not 0 where it is not finite: those of f64 elements, whose squares may be infinite where they are not.
struct GradientNormWork {
  int64_t blocks, tensors;

  int64_t tensor_sums() const { return blocks * 8; }  // bytes from the start
  int64_t block_marks() const { return tensor_sums() + tensors * 8; }
  int64_t tensor_marks() const { return block_marks() + blocks; }
  int64_t bytes() const { return tensor_marks() + tensors; }
};

}  // namespace st::cuda

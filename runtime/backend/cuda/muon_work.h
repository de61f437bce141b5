// Muon's workspace.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cuda/product_choice.h"
#include "backend/cuda/square_chunks.h"

namespace st::cuda {

/// Bytes from the start: in fp32 the matrix X twice, the smaller one of X X^T and X^T X, and its polynomial; then X's sums of squares in
/// fp64, the number by which X is scaled, and the workspace of a library's products.
struct MuonWork {
  int64_t rows, columns;

  int64_t elements() const { return rows * columns; }
  int64_t side() const { return std::min(rows, columns); }
  int64_t second() const { return aligned(elements() * 4); }
  int64_t gram() const { return 2 * second(); }
  int64_t polynomial() const { return gram() + aligned(side() * side() * 4); }
  int64_t sums() const { return polynomial() + aligned(side() * side() * 4); }
  int64_t scale() const { return sums() + square_chunks(elements()) * 8; }
  int64_t library() const { return (scale() + 4 + kLibraryAlignment - 1) / kLibraryAlignment * kLibraryAlignment; }
  int64_t bytes() const { return library() + kLibraryWorkspace; }

 private:
  static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
};

}  // namespace st::cuda

// The product of a backend: what a plan and the ops call. Behind it are packing, blocking and micro-kernels; nothing here asks which.
#pragma once

#include <cstddef>
#include <span>

#include "base/workers.h"
#include "gemm/epilogue.h"
#include "gemm/schedule.h"

namespace st {

/// Operands of a GemmProblem. What is written (C, pre-activation, column sums) overlaps nothing else.
struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;           // n elements of C's type, where the problem says so
  const std::byte* packed_b = nullptr;  // from pack(), read in place of b: the same bits
  const GemmEpilogue* epilogue = nullptr;
};

/// A whole product by one thread, without scratch and without an epilogue; alpha is not 0. The same bits as run()'s.
using SmallProduct = void (*)(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands);

/// A finished piece of C.
struct EpiloguePiece {
  void* c;  // of the whole matrix
  MatrixStrides at;
  DType type;
  int64_t row, rows, column, columns;
};

struct GemmKernels {
  /// The schedule of the problem as_run(); `wanted` is the caller's, and is seen from the transposed problem where that runs.
  TileSchedule (*schedule)(const GemmProblem& problem, const TileSchedule& wanted);
  /// Bytes of workspace for `threads` at a time.
  int64_t (*workspace)(const GemmProblem& problem, const TileSchedule& schedule, int threads);
  /// Bits do not depend on the number of workers. Workspace: 64-byte aligned, not cleared.
  void (*run)(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands, std::span<std::byte> workspace,
              Workers& workers);
  /// All of B's matrices laid out as run() reads them: 64-byte aligned. They fit each problem and schedule with the same packing_of().
  int64_t (*packed_bytes)(const GemmProblem& problem, const TileSchedule& schedule);
  void (*pack)(const GemmProblem& problem, const TileSchedule& schedule, const void* b, std::byte* to, Workers& workers);
  /// For products so small that what run() looks at first would cost as much: whoever makes one many times asks once. Null: run() it.
  SmallProduct (*small)(const GemmProblem& problem, const TileSchedule& schedule, int threads) = nullptr;
  /// What stands behind a product, for sets that differ in the product alone. Null: theirs is another set's.
  void (*apply_epilogue)(const GemmEpilogue& epilogue, const EpiloguePiece& piece) = nullptr;
  void (*sum_columns)(const GemmProblem& problem, const void* c, void* sums, Workers& workers) = nullptr;
};

/// What the layout of a packed B depends on.
struct BPacking {
  int64_t n = 0, k = 0, matrices = 0, panel = 0, piece = 0, block = 0, together = 0;
  bool transposed = false;
  const GemmLibrary* library = nullptr;  // reads B as it lies, without gaps; transposed: column after column
  bool operator==(const BPacking&) const = default;
};
BPacking packing_of(const GemmProblem& problem, const TileSchedule& schedule);

}  // namespace st

// A backend's matrix product, as plans and ops call it. Packing, blocking and micro-kernels are hidden behind it.
#pragma once

#include <cstddef>
#include <span>

#include "base/workers.h"
#include "gemm/epilogue.h"
#include "gemm/schedule.h"

namespace st {

/// Operands of a GemmProblem. Outputs (C, pre-activation, column sums) overlap nothing else.
struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;           // n elements of C's type, if problem.bias
  const std::byte* packed_b = nullptr;  // from pack(), read instead of b; same bits
  const GemmEpilogue* epilogue = nullptr;
};

/// A whole product on one thread, without scratch or epilogue; alpha must not be 0. Same bits as run().
using SmallProduct = void (*)(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands);

/// A finished tile of C.
struct EpilogueTile {
  void* c;  // of the whole matrix
  MatrixStrides at;
  DType type;
  int64_t row, rows, column, columns;
};

struct GemmKernels {
  /// The schedule of as_run(problem). `wanted` is the caller's; it is transposed if the transposed problem runs.
  TileSchedule (*schedule)(const GemmProblem& problem, const TileSchedule& wanted);
  /// Bytes of workspace for `threads` threads.
  int64_t (*workspace)(const GemmProblem& problem, const TileSchedule& schedule, int threads);
  /// Bits do not depend on the number of workers. Workspace: 64-byte aligned, not cleared.
  void (*run)(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands, std::span<std::byte> workspace,
              Workers& workers);
  /// All matrices of B in the layout that run() reads, 64-byte aligned. Valid for every problem and schedule with the same packing_of().
  int64_t (*packed_bytes)(const GemmProblem& problem, const TileSchedule& schedule);
  void (*pack)(const GemmProblem& problem, const TileSchedule& schedule, const void* b, std::byte* to, Workers& workers);
  /// For products so small that run()'s setup costs as much as the work: call once, then repeat the function. Null: use run().
  SmallProduct (*small)(const GemmProblem& problem, const TileSchedule& schedule, int threads) = nullptr;
  /// The epilogue alone, for kernel sets that replace the product only. Null: another set's is used.
  void (*apply_epilogue)(const GemmEpilogue& epilogue, const EpilogueTile& piece) = nullptr;
  void (*sum_columns)(const GemmProblem& problem, const void* c, void* sums, Workers& workers) = nullptr;
};

/// Everything that the layout of a packed B depends on.
struct BPacking {
  int64_t n = 0, k = 0, matrices = 0, panel = 0, piece = 0, block = 0, together = 0;
  bool transposed = false;
  const GemmLibrary* library = nullptr;  // reads an unpacked B without gaps; transposed: column by column
  bool operator==(const BPacking&) const = default;
};
BPacking packing_of(const GemmProblem& problem, const TileSchedule& schedule);

}  // namespace st

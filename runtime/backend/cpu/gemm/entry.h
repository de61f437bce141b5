// The product of one instruction set as seen from outside its objects: one of the few symbols that leave them.
#pragma once

#include <span>

#include "base/workers.h"
#include "gemm/schedule.h"

namespace st::cpu {

/// Operands of a GemmProblem. C overlaps neither A, B nor bias.
struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
};

struct GemmEntry {
  InstructionSet set;
  TileSchedule (*schedule)(const GemmProblem& problem);
  /// Bytes of workspace for `threads` at a time.
  int64_t (*workspace)(const GemmProblem& problem, const TileSchedule& schedule, int threads);
  /// Bits do not depend on the number of workers. Workspace: 64-byte aligned, not cleared.
  void (*run)(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands, std::span<std::byte> workspace,
              Workers& workers);
};

}  // namespace st::cpu

#define ST_CPU_GEMM(isa) extern "C" const st::cpu::GemmEntry* st_cpu_gemm_##isa()

ST_CPU_GEMM(portable);
ST_CPU_GEMM(avx2);
ST_CPU_GEMM(avx512);

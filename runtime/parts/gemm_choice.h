// Chooses the tiles of a stand-alone product: the caller's request, fitted to the micro-kernel and a budget of scratch memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "gemm/gemm_kernels.h"

namespace st {

/// A caller's request; sizes refer to the caller's M and N; 0: choose.
struct GemmWish {
  TileSchedule tiles;
  bool order_is_wished = false;     // tiles.order, which has no 0, is requested
  int64_t max_scratch_bytes = 0;    // 0: no limit
  int64_t memory_left = INT64_MAX;  // free memory, an upper limit in any case

  int64_t scratch_budget() const { return max_scratch_bytes == 0 ? memory_left : std::min(max_scratch_bytes, memory_left); }
};

/// The origin of a schedule: the kernels' table, a request for one of its sizes, the tuning cache, or a measurement just made.
enum class ScheduleSource : int32_t { table, requested, cache, tuned };  // ST_GEMM_SOURCE_* in the C ABI

/// A problem's schedule and its memory; valid for all values of alpha and beta.
struct GemmChoice {
  GemmProblem problem;
  TileSchedule schedule;  // in the kernels' orientation
  int64_t scratch_bytes = 0, packed_bytes = 0;
  bool adjusted = false;  // a size differs from the request
  ScheduleSource source = ScheduleSource::table;

  /// The schedule in the caller's M and N.
  TileSchedule tiles() const { return runs_transposed(problem) ? transposed(schedule) : schedule; }
};

/// A pure function. To fit the budget it may shrink blocks and tiles that were not requested, but never the block of K, which decides bits.
/// Throws invalid_argument for invalid sizes, strides and tiles; out_of_memory, with the numbers and the largest tile that fits, if the
/// request exceeds the budget: max_scratch_bytes or memory_left, whichever is smaller.
GemmChoice choose_gemm(const GemmKernels& kernels, const GemmProblem& problem, const GemmWish& wish, int threads);

/// flop/s predicted by the machine model; 0: no model for these kernels, or nothing to compute.
double predicted_rate(const GemmChoice& choice, std::string_view kernel_class, int threads);

}  // namespace st

// Which tiles a product by itself runs with: what was wished for, fitted to the micro-kernel and to a budget of scratch memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "gemm/gemm_kernels.h"

namespace st {

/// A caller's wish; sizes as the caller's M and N go, 0: choose.
struct GemmWish {
  TileSchedule tiles;
  bool order_is_wished = false;     // tiles.order, which has no 0, is the caller's
  int64_t max_scratch_bytes = 0;    // 0: any
  int64_t memory_left = INT64_MAX;  // what there is for it, whatever was wished

  int64_t scratch_budget() const { return max_scratch_bytes == 0 ? memory_left : std::min(max_scratch_bytes, memory_left); }
};

/// Where a schedule comes from: the kernels' table, a wish for one of its sizes, the tuning cache, or measuring just now.
enum class ScheduleSource : int32_t { table, wish, cache, tuned };  // ST_GEMM_SOURCE_* in the C ABI

/// A problem's schedule and what it costs. alpha and beta of the problem are a run's own matter: this holds for all of them.
struct GemmChoice {
  GemmProblem problem;
  TileSchedule schedule;  // as the kernels run it
  int64_t scratch_bytes = 0, packed_bytes = 0;
  bool adjusted = false;  // a size is another one than wished
  ScheduleSource source = ScheduleSource::table;

  /// The schedule as the caller's M and N go.
  TileSchedule tiles() const { return runs_transposed(problem) ? transposed(schedule) : schedule; }
};

/// A pure function. The budget may make blocks and tiles smaller that are not wished for, never the piece of K, which decides bits.
/// Throws invalid_argument for sizes, strides and tiles that make no sense, out_of_memory with the numbers and the largest tile that fits
/// when the wish is beyond the budget: max_scratch_bytes, or less where less is left.
GemmChoice choose_gemm(const GemmKernels& kernels, const GemmProblem& problem, const GemmWish& wish, int threads);

/// What the model of this machine says of it, flop/s; 0: there is none of these kernels, or nothing to compute.
double predicted_rate(const GemmChoice& choice, std::string_view kernel_class, int threads);

}  // namespace st

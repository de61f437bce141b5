// The size of the tasks that threads take, for a number of threads.
#pragma once

#include <cstdint>

#include "gemm/schedule.h"

namespace st {

/// Rows and columns of C in elements: multiples of the schedule's mr and nr.
struct TaskSize {
  int64_t rows, columns;
  bool operator==(const TaskSize&) const = default;
};

/// Tasks for a block of rows x columns of C: at most mc x nc, and with several threads small enough that all threads end together. Columns
/// are cut first: a task then still reuses each panel of B for all its rows. No bit depends on it, because tiles and the cut of K stay.
/// Tile kernels keep mc x nc, since their scratch is laid out by task.
TaskSize task_size(const TileSchedule& schedule, int64_t rows, int64_t columns, int threads);

/// Whether a fork and a join would cost what a second thread gains.
constexpr bool is_for_one_thread(const GemmProblem& p) { return p.m * p.n * p.k < 1 << 18; }

/// The same for a product that reads A and B in place: rows of A that stay in L2 while each panel of B passes; all of C if it is too small
/// to share.
TaskSize small_task_size(const TileSchedule& schedule, const GemmProblem& problem, int threads);

}  // namespace st

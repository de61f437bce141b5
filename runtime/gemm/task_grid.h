// How a block of C is cut into the tasks that threads take.
#pragma once

#include <cstdint>

#include "gemm/schedule.h"

namespace st {

/// Rows and columns of C, relative to its block. They begin at whole tiles.
struct TaskBlock {
  int64_t row, rows, column, columns;
};

/// A grid of tasks of nearly equal size. Its cuts are whole tiles, so no bit depends on it.
struct TaskGrid {
  int64_t rows, columns;          // of the block of C
  int64_t row_unit, column_unit;  // each task has whole units, but for the block's end
  int64_t down, across;           // tasks
  bool down_first = true;         // neighbouring tasks, which one thread takes, share columns of B; else rows of A

  int64_t count() const { return down * across; }
  TaskBlock at(int64_t task) const;
};

/// Tasks for a block of rows x columns of C: at most mc x nc, and with several threads of such a number and size that all end together.
/// - `packs_rows`: A's rows are packed in this block and lie one after the other. If there are rows enough and B is short, tasks are cut
///   along the rows alone, and each packs its own.
/// - Else columns are cut first: a task then still reuses each panel of B for all its rows.
/// - Tile kernels keep mc x nc, since their scratch is laid out by task, and prefetch the columns of the next task.
TaskGrid task_grid(const TileSchedule& schedule, int64_t rows, int64_t columns, int threads, bool packs_rows);

/// Whether a fork and a join would cost what a second thread gains.
constexpr bool is_for_one_thread(const GemmProblem& p) { return p.m * p.n * p.k < 1 << 18; }

/// The same for a product that reads A and B in place: a task's rows of A stay in L2 while each panel of B passes. One task if the product
/// is too small to share.
TaskGrid small_task_grid(const TileSchedule& schedule, const GemmProblem& problem, int threads);

}  // namespace st

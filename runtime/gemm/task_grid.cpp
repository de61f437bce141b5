#include "gemm/task_size.h"

#include <algorithm>

#include "gemm/rounding.h"

namespace st {
namespace {

constexpr int64_t kTasksPerThread = 8;   // the last one to end costs at most an eighth of a thread's time
constexpr int64_t kRowsOfA = 256 << 10;  // bytes

/// At least `least` tasks and at most one per panel; in between, as many as are wanted.
int64_t tasks(int64_t wanted, int64_t least, int64_t panels) { return std::clamp(wanted, std::min(least, panels), panels); }

}  // namespace

TaskSize task_size(const TileSchedule& s, int64_t rows, int64_t columns, int threads) {
  if (threads == 1 || is_of_tiles(s) || rows == 0 || columns == 0) return {s.mc, s.nc};
  const int64_t row_panels = ceil_div(rows, s.mr), column_panels = ceil_div(columns, s.nr);
  int64_t row_tasks = ceil_div(rows, s.mc), column_tasks = ceil_div(columns, s.nc);
  // A B that is read in place streams past once: equal shares, as long as possible.
  const int64_t wanted = s.packs_b() ? kTasksPerThread * threads : ceil_div(column_tasks, threads) * threads;
  column_tasks = tasks(s.packs_b() ? ceil_div(wanted, row_tasks) : wanted, column_tasks, column_panels);
  row_tasks = tasks(ceil_div(s.packs_b() ? wanted : threads, column_tasks), row_tasks, row_panels);
  return {ceil_div(row_panels, row_tasks) * s.mr, ceil_div(column_panels, column_tasks) * s.nr};
}

TaskSize small_task_size(const TileSchedule& s, const GemmProblem& p, int threads) {
  const int64_t row_panels = ceil_div(p.m, s.mr), column_panels = ceil_div(p.n, s.nr);
  const int64_t most = std::max<int64_t>(1, kRowsOfA / (s.mr * std::max<int64_t>(1, p.k) * 4)), blocks = ceil_div(row_panels, most);
  const auto size = [&](int64_t row_tasks, int64_t columns) { return TaskSize{ceil_div(row_panels, row_tasks) * s.mr, columns * s.nr}; };
  if (threads == 1 || is_for_one_thread(p)) return size(blocks, column_panels);
  if (blocks >= 4 * threads) return size(round_up(blocks, threads), column_panels);
  // As many equal tasks for each thread. Two each, so that one that wakes late leaves half of its work to the others.
  const int64_t columns = column_panels % (2 * threads) == 0 ? column_panels / (2 * threads)
                          : column_panels % threads == 0     ? column_panels / threads
                                                             : 1;
  const bool even = ceil_div(column_panels, columns) % threads == 0;
  return size(std::min(even ? blocks : round_up(blocks, threads), row_panels), columns);
}

}  // namespace st

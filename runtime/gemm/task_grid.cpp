#include "gemm/task_grid.h"

#include <algorithm>

#include "gemm/rounding.h"

namespace st {
namespace {

constexpr int64_t kTasksPerThread = 8;   // the last one to end costs at most an eighth of a thread's time
constexpr int64_t kPanelsPerTask = 4;    // fewer rows would read B too often
constexpr int64_t kRowsOfA = 256 << 10;  // bytes
constexpr int64_t kAllOfB = 256 << 10;   // elements: 1 MiB of floats

/// At least `least` tasks and at most one per panel; in between, as many as are wanted.
int64_t tasks(int64_t wanted, int64_t least, int64_t panels) { return std::clamp(wanted, std::min(least, panels), panels); }

}  // namespace

TaskBlock TaskGrid::at(int64_t task) const {
  const auto cut = [](int64_t i, int64_t parts, int64_t unit, int64_t size) {
    return std::min(ceil_div(size, unit) * i / parts * unit, size);
  };
  const int64_t i = down_first ? task % down : task / across, j = down_first ? task / down : task % across;
  const int64_t row = cut(i, down, row_unit, rows), column = cut(j, across, column_unit, columns);
  return {row, cut(i + 1, down, row_unit, rows) - row, column, cut(j + 1, across, column_unit, columns) - column};
}

TaskGrid task_grid(const TileSchedule& s, int64_t rows, int64_t columns, int threads, bool packs_rows) {
  TaskGrid grid{rows, columns, s.mr, s.nr, ceil_div(rows, s.mc), ceil_div(columns, s.nc)};
  if (is_of_tiles(s)) grid.row_unit = s.mc, grid.column_unit = s.nc, grid.down_first = false;
  if (threads == 1 || is_of_tiles(s) || rows == 0 || columns == 0) return grid;
  const int64_t row_panels = ceil_div(rows, s.mr), column_panels = ceil_div(columns, s.nr);
  const int64_t most = kTasksPerThread * threads, least = most / 2;
  if (packs_rows && s.packs_b() && columns * s.kc <= kAllOfB && row_panels >= least * kPanelsPerTask) {
    grid.down = std::max(round_up(grid.down, threads), std::min(most, row_panels / kPanelsPerTask / threads * threads));
    grid.across = 1;
    return grid;
  }
  // A B that is read in place streams past once: equal shares, as long as possible.
  const int64_t wanted = s.packs_b() ? most : round_up(grid.across, threads);
  grid.across = tasks(s.packs_b() ? ceil_div(wanted, grid.down) : wanted, grid.across, column_panels);
  grid.down = tasks(ceil_div(s.packs_b() ? wanted : threads, grid.across), grid.down, row_panels);
  return grid;
}

TaskGrid small_task_grid(const TileSchedule& s, const GemmProblem& p, int threads) {
  const int64_t row_panels = ceil_div(p.m, s.mr), column_panels = ceil_div(p.n, s.nr);
  const int64_t most = std::max<int64_t>(1, kRowsOfA / (s.mr * std::max<int64_t>(1, p.k) * 4)), blocks = ceil_div(row_panels, most);
  TaskGrid grid{p.m, p.n, s.mr, s.nr, blocks, 1};
  if (threads == 1 || is_for_one_thread(p)) return grid;
  if (blocks >= 4 * threads) {
    grid.down = std::min(round_up(blocks, threads), row_panels);
    return grid;
  }
  // As many equal tasks for each thread. Two each, so that one that wakes late leaves half of its work to the others.
  grid.across = column_panels % (2 * threads) == 0 ? 2 * threads : column_panels % threads == 0 ? threads : column_panels;
  if (grid.across % threads != 0) grid.down = std::min(round_up(blocks, threads), row_panels);
  return grid;
}

}  // namespace st

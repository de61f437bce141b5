// Tasks for a number of threads: whole tiles, within the schedule's limits, and of sizes that let all threads end together.
#include "gemm/task_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plain_problem.h"

namespace st {
namespace {

/// The time of the thread that ends last, relative to equal shares, as Workers share tasks out: equal numbers of neighbouring tasks, and a
/// thread that has done its own takes of the others'. A task costs as many multiply-adds as it has.
double last_to_end(const TaskGrid& grid, int64_t threads) {
  std::vector<double> ends(static_cast<size_t>(threads), 0);
  std::vector<int64_t> next, end;
  for (int64_t thread = 0; thread < threads; ++thread) {
    next.push_back(thread == 0 ? 0 : end.back());
    end.push_back(next.back() + grid.count() / threads + (thread < grid.count() % threads ? 1 : 0));
  }
  for (int64_t done = 0; done < grid.count(); ++done) {
    const auto first = std::ranges::min_element(ends) - ends.begin();
    auto share = static_cast<size_t>(first);
    while (next[share] == end[share]) share = (share + 1) % ends.size();
    const TaskBlock task = grid.at(next[share]++);
    ends[static_cast<size_t>(first)] += static_cast<double>(task.rows * task.columns);
  }
  return *std::ranges::max_element(ends) * static_cast<double>(threads) / static_cast<double>(grid.rows * grid.columns);
}

TEST(TaskGrid, CoversTheBlockWithWholeTiles) {
  for (const InstructionSet set : {InstructionSet::portable, InstructionSet::avx2, InstructionSet::avx512, InstructionSet::amx_bf16})
    for (const int64_t m : {1, 7, 128, 257, 1000})
      for (const int64_t n : {1, 40, 257, 3072})
        for (const int threads : {1, 2, 3, 8, 64})
          for (const bool packs_rows : {false, true}) {
            const TileSchedule s = choose_schedule(plain_problem(m, n, 300), set);
            const TaskGrid grid = task_grid(s, m, n, threads, packs_rows);
            SCOPED_TRACE(text_of(s));
            int64_t row = 0, column = 0;  // where the next task begins
            for (int64_t t = 0; t < grid.count(); ++t) {
              const TaskBlock task = grid.at(grid.down_first ? t : t % grid.down * grid.across + t / grid.down);
              EXPECT_EQ(task.row, row);
              EXPECT_EQ(task.column, column);
              EXPECT_EQ(task.row % s.mr, 0);
              EXPECT_EQ(task.column % s.nr, 0);
              EXPECT_GT(std::min(task.rows, task.columns), 0);
              EXPECT_LE(task.rows, s.mc);
              EXPECT_LE(task.columns, grid.across == 1 ? n : s.nc);
              EXPECT_TRUE(!is_of_tiles(s) || task.row % s.mc + task.column % s.nc == 0);
              row += task.rows;
              if (row == m) row = 0, column += task.columns;
            }
            EXPECT_EQ(column, n);
          }
}

TEST(TaskGrid, IsOfRowsAloneWhereEachTaskPacksItsOwn) {
  for (const int threads : {2, 4}) {
    const TileSchedule s = choose_schedule(plain_problem(1024, 512, 128), InstructionSet::avx512);
    EXPECT_EQ(task_grid(s, 1024, 512, threads, true).across, 1);
    EXPECT_GT(task_grid(s, 128, 512, threads, true).across, 1) << "too few rows";
    EXPECT_GT(task_grid(s, 1024, 512, threads, false).across, 1);
  }
}

TEST(TaskGrid, LetsThreadsEndTogether) {
  struct Shape {
    int64_t m, n, k;
  };
  for (const InstructionSet set : {InstructionSet::avx2, InstructionSet::avx512})
    for (const Shape& x : {Shape{256, 256, 256},
                           {257, 257, 257},
                           {512, 512, 512},
                           {1000, 1000, 1000},
                           {1024, 32, 1024},
                           {8, 768, 3072},
                           {1, 3072, 768},
                           {37, 1013, 511},
                           {64, 768, 768}})
      for (const int threads : {2, 4})
        for (const bool packs_rows : {false, true}) {
          const TileSchedule s = choose_schedule(plain_problem(x.m, x.n, x.k), set);
          EXPECT_LE(last_to_end(task_grid(s, x.m, x.n, threads, packs_rows), threads), 1.15)
              << text_of(s) << ", " << x.m << "x" << x.n << ", " << threads << " threads";
        }
}

TEST(TaskGrid, OfAProductInPlaceIsEqualSharesOrOneTask) {
  for (const int64_t size : {64, 96, 128, 192, 256, 257}) {
    const GemmProblem p = plain_problem(size, size, size);
    const TileSchedule s = choose_schedule(p, InstructionSet::avx512);
    for (const int threads : {2, 3, 4}) EXPECT_LE(last_to_end(small_task_grid(s, p, threads), threads), size < 128 ? 1.6 : 1.25) << size;
  }
  for (const int threads : {1, 2, 8}) {
    const GemmProblem tiny = plain_problem(32, 32, 32);
    EXPECT_EQ(small_task_grid(choose_schedule(tiny, InstructionSet::avx512), tiny, threads).count(), 1);
  }
  const GemmProblem empty = plain_problem(5, 6, 0);  // C = beta C
  EXPECT_EQ(small_task_grid(choose_schedule(empty, InstructionSet::avx512), empty, 2).count(), 1);
  // Many rows: a task's rows of A stay in the L2.
  const GemmProblem tall = plain_problem(1000, 32, 512);
  EXPECT_LE(small_task_grid(choose_schedule(tall, InstructionSet::avx512), tall, 1).at(0).rows * 512 * 4, 256 << 10);
}

}  // namespace
}  // namespace st

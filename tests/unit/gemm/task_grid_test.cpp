// Tasks for a number of threads: whole tiles, within the schedule's limits, and of sizes that let all threads end together.
#include "gemm/task_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plain_problem.h"

namespace st {
namespace {

/// The time of the thread that ends last, relative to equal shares, if each thread takes the next task, in order, when it has ended one. A
/// task costs as many multiply-adds as it has.
double last_to_end(const TaskSize& task, int64_t m, int64_t n, int threads) {
  std::vector<double> ends(static_cast<size_t>(threads), 0);
  for (int64_t i = 0; i < m; i += task.rows)
    for (int64_t j = 0; j < n; j += task.columns)
      *std::ranges::min_element(ends) += static_cast<double>(std::min(task.rows, m - i) * std::min(task.columns, n - j));
  return *std::ranges::max_element(ends) * threads / static_cast<double>(m * n);
}

TEST(TaskSize, IsOfWholeTilesWithinTheSchedule) {
  for (const InstructionSet set : {InstructionSet::portable, InstructionSet::avx2, InstructionSet::avx512, InstructionSet::amx_bf16})
    for (const int64_t m : {1, 7, 128, 257, 1000})
      for (const int64_t n : {1, 40, 257, 3072})
        for (const int threads : {1, 2, 3, 8, 64}) {
          const TileSchedule s = choose_schedule(plain_problem(m, n, 300), set);
          const TaskSize task = task_size(s, m, n, threads);
          SCOPED_TRACE(text_of(s));
          EXPECT_EQ(task.rows % s.mr, 0);
          EXPECT_EQ(task.columns % s.nr, 0);
          EXPECT_GT(std::min(task.rows, task.columns), 0);
          EXPECT_LE(task.rows, s.mc);
          EXPECT_LE(task.columns, s.nc);
          if (threads == 1 || is_of_tiles(s)) {
            EXPECT_EQ(task, (TaskSize{s.mc, s.nc}));
          }
        }
}

TEST(TaskSize, LetsThreadsEndTogether) {
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
      for (const int threads : {2, 4}) {
        const TileSchedule s = choose_schedule(plain_problem(x.m, x.n, x.k), set);
        EXPECT_LE(last_to_end(task_size(s, x.m, x.n, threads), x.m, x.n, threads), 1.15)
            << text_of(s) << ", " << x.m << "x" << x.n << ", " << threads << " threads";
      }
}

TEST(TaskSize, OfAProductInPlaceIsEqualSharesOrAll) {
  for (const int64_t size : {64, 96, 128, 192, 256, 257}) {
    const GemmProblem p = plain_problem(size, size, size);
    const TileSchedule s = choose_schedule(p, InstructionSet::avx512);
    for (const int threads : {2, 3, 4})
      EXPECT_LE(last_to_end(small_task_size(s, p, threads), size, size, threads), size < 128 ? 1.6 : 1.25) << size;
  }
  for (const int threads : {1, 2, 8}) {
    const GemmProblem tiny = plain_problem(32, 32, 32);
    const TaskSize task = small_task_size(choose_schedule(tiny, InstructionSet::avx512), tiny, threads);
    EXPECT_GE(task.rows, 32);
    EXPECT_GE(task.columns, 32);
  }
  const GemmProblem empty = plain_problem(5, 6, 0);  // C = beta C
  EXPECT_GT(small_task_size(choose_schedule(empty, InstructionSet::avx512), empty, 2).rows, 0);
  // Many rows: a task's rows of A stay in the L2.
  const GemmProblem tall = plain_problem(1000, 32, 512);
  EXPECT_LE(small_task_size(choose_schedule(tall, InstructionSet::avx512), tall, 1).rows * 512 * 4, 256 << 10);
}

}  // namespace
}  // namespace st

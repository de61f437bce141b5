// A task of tile kernels. A tile product is so fast that sums must not leave L2 between the K blocks. So a task goes through all packed K
// blocks, keeps its sums tile by tile in a few pages of its own, and prefetches the next block meanwhile. If no other task has its columns,
// it packs B itself, block by block, into its own buffer in L2: a B packed completely would go out to L3 and come back.
#pragma once

#include <atomic>
#include <bit>

#include "backend/cpu/gemm/product.h"
#include "gemm/task_grid.h"

namespace st::cpu::ST_ISA {

/// Buffers for the sums of the tasks that run at a time: takes the lowest free one, so that few threads stay in the same few pages.
class SumBuffers {
 public:
  /// `kept`: sums are still needed after a task, so each task has its own buffer. Else rooms <= 64.
  SumBuffers(int64_t rooms, bool kept) : rooms_(rooms), shared_(!kept) {}

  int64_t take(int64_t task) {
    if (!shared_) return task;
    for (uint64_t taken = taken_.load();;) {
      const int room = std::countr_one(taken);
      if (room >= rooms_) {
        taken = taken_.load();  // spin: the holders are running and do not block
      } else if (taken_.compare_exchange_weak(taken, taken | uint64_t{1} << room)) {
        return room;
      }
    }
  }
  void give_back(int64_t room) {
    if (shared_) taken_.fetch_and(~(uint64_t{1} << room));
  }

 private:
  std::atomic<uint64_t> taken_ = 0;
  int64_t rooms_;
  bool shared_;
};

/// A task's share of all packed K blocks from at.k on. `buffer`: number of its buffer for sums. in_place: B is not packed.
void tile_task(const Product& product, const BlockOrigin& at, const TaskBlock& block, int64_t buffer, bool in_place);

}  // namespace st::cpu::ST_ISA

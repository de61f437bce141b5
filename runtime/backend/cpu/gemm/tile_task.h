// A task of a set that multiplies tiles. One product of tiles is so fast that sums must not leave the L2 between the pieces of K: a task
// goes through all pieces that are packed, its sums wait tile by tile in a few pages of their own, and meanwhile the next piece is fetched.
// Where no other task has its columns, it packs B itself, piece by piece, into room of its own in the L2: a B that is packed as a whole
// goes out to the L3 and comes back.
#pragma once

#include <atomic>
#include <bit>

#include "backend/cpu/gemm/product.h"
#include "backend/cpu/gemm/tiles.h"

namespace st::cpu::ST_ISA {

/// Rooms for the sums of the tasks that run at a time: the lowest free one, so that few threads stay in the same few pages.
class SumRooms {
 public:
  /// `kept`: sums are still needed when a task is done, each needs a room of its own. Else rooms <= 64.
  SumRooms(int64_t rooms, bool kept) : rooms_(rooms), shared_(!kept) {}

  int64_t take(int64_t task) {
    if (!shared_) return task;
    for (uint64_t taken = taken_.load();;) {
      const int room = std::countr_one(taken);
      if (room >= rooms_) {
        taken = taken_.load();  // its holder runs, and waits for nobody
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

}  // namespace st::cpu::ST_ISA

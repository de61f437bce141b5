// A task of a set that multiplies tiles. One product of tiles is so fast that sums must not leave the L2 between the pieces of K: a task
// goes through all pieces that are packed, its sums wait tile by tile in a few pages of their own, and meanwhile the next piece is fetched.
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

/// What the next piece reads, spread over the products of this one.
class Ahead {
 public:
  Ahead(const Cell* b, int64_t b_cells, const Cell* a, int64_t a_cells, int64_t products)
      : b_(b), a_(a), b_lines_(b_cells / micro::kTile), a_lines_(a_cells / micro::kTile) {
    step_ = (b_lines_ + a_lines_ + products - 1) / std::max<int64_t>(products, 1);
  }

  void fetch_during(Tile& t) {
    if (at_ >= b_lines_ + a_lines_) return;
    t.ahead = at_ < b_lines_ ? b_ + at_ * micro::kTile : a_ + (at_ - b_lines_) * micro::kTile;
    t.ahead_step = step_;
    at_ += step_ * (t.depth / micro::kTile);
  }

 private:
  const Cell *b_, *a_;
  int64_t b_lines_, a_lines_, step_ = 0, at_ = 0;
};

}  // namespace st::cpu::ST_ISA

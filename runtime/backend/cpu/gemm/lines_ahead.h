// Prefetches what a later step of a task reads into L2, a few lines at a time during this step's multiplication: all at once they would
// delay the multiplication's own loads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "backend/cpu/gemm/cells.h"

namespace st::cpu::ST_ISA::micro {

class LinesAhead {
 public:
  /// `rows` of `bytes` each, `stride` bytes apart. At most two such ranges.
  void add(const void* at, int64_t bytes, int64_t rows, int64_t stride) {
    if (bytes <= 0 || rows <= 0) return;
    const auto* const first = static_cast<const char*>(at);
    // If a row does not begin at a line, its last line is skipped: that is the start of the row of the next columns.
    parts_[count_++] = {first, first + bytes - 1, rows, stride};
    lines_ += rows * ((bytes + kLine - 1) / kLine);
  }
  void add(const Cell* at, int64_t cells) { add(at, cells * 4, 1, 0); }

  /// Distributes the lines over this many steps of the multiplication.
  void spread(int64_t steps) {
    step_ = (lines_ + steps - 1) / std::max<int64_t>(steps, 1);
    if (count_ > 0) begin_row();
  }

  /// A copy in registers: call fetch() in each step and leave() at the end, which stores the position.
  struct Cursor {
    LinesAhead* lines;
    const char *at, *last;
    int64_t step;

    explicit ST_MICRO Cursor(LinesAhead* of)
        : lines(of),
          at(of == nullptr ? nullptr : of->at_),
          last(of == nullptr ? nullptr : of->last_),
          step(of == nullptr ? 0 : of->step_) {}
    ST_MICRO void fetch() {
      if (last - at < step * kLine) [[unlikely]]
        return lines->turn(*this);
      for (int64_t line = 0; line < step; ++line) __builtin_prefetch(at + line * kLine, 0, 2);
      at += step * kLine;
    }
    ST_MICRO void leave() const {
      if (lines != nullptr) lines->at_ = at, lines->step_ = step;
    }
  };

 private:
  static constexpr int64_t kLine = 64;
  struct Block {
    const char *first, *last;
    int64_t rows, stride;
  };

  /// A step in which a row ends.
  [[gnu::noinline]] void turn(Cursor& c) {
    for (int64_t line = 0; line < c.step; ++line) {
      if (c.at > c.last) {
        Block& part = parts_[part_];
        part.first += part.stride;
        part.last += part.stride;
        if (--part.rows == 0) ++part_;
        begin_row();
        c.at = at_, c.last = last_;
        if (c.at == nullptr) {
          c.step = 0;
          return;
        }
      }
      __builtin_prefetch(c.at, 0, 2);
      c.at += kLine;
    }
  }

  void begin_row() {
    at_ = part_ < count_ ? parts_[part_].first : nullptr;
    last_ = part_ < count_ ? parts_[part_].last : nullptr;
  }

  std::array<Block, 2> parts_{};
  size_t count_ = 0, part_ = 0;
  const char *at_ = nullptr, *last_ = nullptr;
  int64_t lines_ = 0, step_ = 0;
};

}  // namespace st::cpu::ST_ISA::micro

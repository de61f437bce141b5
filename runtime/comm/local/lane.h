// The byte ranges that one thread rank has posted to another. One thread posts, one reads; neither locks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "base/spin.h"

namespace st {

class Lane {
 public:
  using Bytes = std::span<const std::byte>;

  // For the poster.

  /// Throws bad_alloc if there is neither a free slot nor memory to queue the range; then nothing was posted.
  void post(Bytes bytes) {
    if (next_waiting_ == waiting_.size() && put(bytes)) return;
    waiting_.push_back(bytes);
  }
  /// Moves queued ranges into free slots; returns whether any moved.
  bool refill() {
    const size_t before = next_waiting_;
    while (next_waiting_ < waiting_.size() && put(waiting_[next_waiting_])) ++next_waiting_;
    const bool moved = next_waiting_ != before;
    if (next_waiting_ == waiting_.size()) {
      waiting_.clear();  // keeps its memory for the next time
      next_waiting_ = 0;
    }
    return moved;
  }
  /// The reader can reach everything without the poster's help.
  bool is_in_slots() const { return waiting_.empty(); }
  /// All bytes taken so far, including those of the range that is being read.
  uint64_t read_bytes() const { return read_.load(std::memory_order_relaxed); }
  bool is_drained() const { return waiting_.empty() && taken_.load(std::memory_order_acquire) == posted_count_; }
  /// Hides everything from the reader; returns once it no longer reads the poster's memory.
  void withdraw() noexcept {
    withdrawn_.store(true);
    for (int i = 0; is_reading_.load(); ++i)
      if (i % 64 < 63)
        spin_pause();
      else
        std::this_thread::yield();  // the reader may be queued on this core
    waiting_.clear();
    next_waiting_ = 0;
  }

  // For the reader.

  Bytes front() {
    if (taken_count_ == posted_.load(std::memory_order_acquire)) return {};
    // Both this and withdraw() store their own flag before they load the other's, so at least one of them sees the other.
    is_reading_.store(true);
    if (withdrawn_.load()) {
      is_reading_.store(false);
      return {};
    }
    return slots_[taken_count_ % kSlots].subspan(offset_);
  }
  /// Returns whether a posted range has now been taken completely.
  bool take(size_t bytes) {
    offset_ += bytes;
    read_.store(read_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    const bool whole = offset_ == slots_[taken_count_ % kSlots].size();
    if (whole) {
      offset_ = 0;
      taken_.store(++taken_count_, std::memory_order_release);
    }
    stop_reading();
    return whole;
  }
  void stop_reading() {
    if (is_reading_.load(std::memory_order_relaxed)) is_reading_.store(false, std::memory_order_release);
  }

 private:
  static constexpr uint64_t kSlots = 64;

  bool put(Bytes bytes) {
    if (posted_count_ - taken_.load(std::memory_order_acquire) == kSlots) return false;
    slots_[posted_count_ % kSlots] = bytes;
    posted_.store(++posted_count_, std::memory_order_release);
    return true;
  }

  std::array<Bytes, kSlots> slots_;
  // One cache line for what the poster writes and one for what the reader writes.
  alignas(64) std::atomic<uint64_t> posted_{0};
  std::atomic<bool> withdrawn_{false};
  uint64_t posted_count_ = 0;
  std::vector<Bytes> waiting_;
  size_t next_waiting_ = 0;
  alignas(64) std::atomic<uint64_t> taken_{0};
  std::atomic<uint64_t> read_{0};
  std::atomic<bool> is_reading_{false};
  uint64_t taken_count_ = 0;
  size_t offset_ = 0;  // in the front slot
};

}  // namespace st

// Messages from one thread of a process to another: whichever side comes second copies, so no other thread has to be scheduled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/bell.h"
#include "base/os/machine.h"

namespace st {

/// One way, between a sending and a receiving thread. Messages are numbered from 1 by each side and arrive in order. Allocates for as many
/// as one side is ahead of the other.
class HandOver {
 public:
  enum class Side : int32_t { sends, receives };

  /// The next message of that side: memory that is read, or written. Borrowed until wait() has returned true for it, or end().
  void add(Side side, void* data, int64_t bytes);
  /// Waits until a message has been copied, at most `seconds`; false: not yet, or never (has_ended()).
  bool wait(Side side, int64_t message, double seconds);
  /// No message is copied from now on; wakes both sides.
  void end() noexcept;
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  /// The two sides' sizes of a message differ, which has ended it.
  bool differs() const { return differs_.load(std::memory_order_acquire); }

 private:
  struct Range {
    std::byte* data = nullptr;
    int64_t bytes = 0;
  };
  struct Queue {
    std::vector<Range> ring = std::vector<Range>(4);  // message n is at n % its size
    int64_t added = 0;
    Bell bell;  // of the side's thread
  };

  Queue& of(Side side) { return side == Side::sends ? sent_ : received_; }
  static const Range& at(const Queue& queue, int64_t message) { return queue.ring[static_cast<size_t>(message) % queue.ring.size()]; }
  void make_room(Queue& queue) const;

  const bool spins_ = os::available_cores() > 1;
  std::mutex mutex_;  // guards the queues
  Queue sent_, received_;
  std::atomic<int64_t> copied_{0};  // messages
  std::atomic<bool> has_ended_{false}, differs_{false};
};

}  // namespace st

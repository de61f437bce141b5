// Messages from one thread of a process to another: whichever side comes second copies, so no other thread has to be scheduled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/bell.h"
#include "base/os/machine.h"

namespace st {

/// One way, between a sending and a receiving thread. Messages are numbered from 1 by each side and arrive in order. Allocates for as many
/// as one side is ahead of the other. The elements of an offered message move elsewhere, such as in a device's memory: the receiver gets a
/// number of the sender's choice, moves the elements, and says so.
class HandOver {
 public:
  enum class Side : int32_t { sends, receives };

  /// The next message of that side: memory that is read, or written. Borrowed until wait() has returned true for it, or end().
  void add(Side side, void* data, int64_t bytes);
  /// The sender's next message, offered.
  void offer(uint64_t number, int64_t bytes);
  /// Waits at most `seconds` for the sender's next message, which has `bytes` and is offered, and gets its number. None: not yet, or never
  /// (has_ended()). The receiver has added no message that has not come.
  std::optional<uint64_t> offered(int64_t bytes, double seconds);
  /// The receiver has moved the elements of the message that offered() has got.
  void taken();

  /// Sets the memory in which a side's messages lie, before the first one: the address of what stands for it; null: the host's.
  void set_memory(Side side, const void* memory) { of(side).memory = memory; }
  /// Whether both lie in the same memory, not the host's: its messages may be offered.
  bool shares_memory() const { return sent_.memory != nullptr && sent_.memory == received_.memory; }

  /// Waits until a message has been copied or taken, at most `seconds`; false: not yet, or never (has_ended()).
  bool wait(Side side, int64_t message, double seconds);
  /// No message is copied or offered from now on; wakes both sides.
  void end() noexcept;
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  /// The two sides differ in the size of a message, or in whether it is offered, which has ended it.
  bool differs() const { return differs_.load(std::memory_order_acquire); }

 private:
  struct Range {
    std::byte* data = nullptr;
    int64_t bytes = 0;
    std::optional<uint64_t> offer = {};
  };
  struct Queue {
    std::vector<Range> ring = std::vector<Range>(4);  // message n is at n % its size
    int64_t added = 0;
    Bell bell;  // of the side's thread
    const void* memory = nullptr;
  };

  Queue& of(Side side) { return side == Side::sends ? sent_ : received_; }
  static const Range& at(const Queue& queue, int64_t message) { return queue.ring[static_cast<size_t>(message) % queue.ring.size()]; }
  void make_room(Queue& queue) const;
  void put(Queue& queue, const Range& range);
  void differ();
  std::optional<uint64_t> next_offer(int64_t bytes);

  const bool spins_ = os::available_cores() > 1;
  std::mutex mutex_;  // guards the queues
  Queue sent_, received_;
  std::atomic<int64_t> copied_{0};  // messages, or taken
  std::atomic<bool> has_ended_{false}, differs_{false};
};

}  // namespace st

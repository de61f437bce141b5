// Shows the other processes that this one is alive, even while it computes.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>

#include "base/os/machine.h"
#include "comm/local/shared_segment.h"

namespace st {

/// A thread that owns a rank's slot in a segment and writes the time there ten times a second. It ends with the process, whatever ends
/// that, and pauses while the process is stopped.
class Heartbeat {
 public:
  /// Throws busy if the slot is taken, unavailable if the thread cannot be started. Borrows the slot for its lifetime.
  Heartbeat(RankSlot& slot, int rank);
  ~Heartbeat();  // marks the rank as having left in good order
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Seconds without a beat of another rank while ours went on beating: time in which this process itself was stopped does not count.
  double silence_of(const RankSlot& other) const;

 private:
  enum State : uint32_t { starting, beating, refused, stopping };
  void run(RankSlot& slot) noexcept;
  void beat(RankSlot& slot) noexcept;

  std::atomic<uint32_t> state_{starting};
  std::exception_ptr error_;             // why it was refused, unless the slot is taken
  std::atomic<int64_t> last_beat_{0};    // a copy, because others could overwrite the slot
  std::atomic<int64_t> awake_since_{0};  // this process's start, or the end of its last stop
  const int64_t process_ = os::process_id();
  std::thread thread_;
};

}  // namespace st

// Shows the other processes that this one lives, also while it computes.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>

#include "base/os/machine.h"
#include "comm/local/shared_segment.h"

namespace st {

/// A thread that owns a rank's place in a segment and writes the time there, ten times a second. It ends with the process whatever ends
/// that, and stands still when the process is stopped.
class Heartbeat {
 public:
  /// Throws busy where the place is taken, unavailable where no such thread can be had. The slot outlives it.
  Heartbeat(RankSlot& slot, int rank);
  ~Heartbeat();  // the rank has left, in order
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Seconds for which another's heart stood still while ours beat: what passes while we are stopped ourselves is nobody's silence.
  double silence_of(const RankSlot& other) const;

 private:
  enum State : uint32_t { starting, beating, refused, stopping };
  void run(RankSlot& slot) noexcept;
  void beat(RankSlot& slot) noexcept;

  std::atomic<uint32_t> state_{starting};
  std::exception_ptr error_;             // why it was refused, if not because the place is taken
  std::atomic<int64_t> last_beat_{0};    // as in the slot, which others could write to
  std::atomic<int64_t> awake_since_{0};  // of this process: its start, or the end of its last stop
  const int64_t process_ = os::process_id();
  std::thread thread_;
};

}  // namespace st

// Work that continues after the call that started it.
#pragma once

#include <scaletrain/pending.h>

#include <chrono>
#include <scaletrain/handle.hpp>

namespace scaletrain {

/// Its destructor waits for the end, as std::async's future; but a checkpoint's save continues.
class Pending : public detail::Handle<st_pending, st_pending_destroy> {
 public:
  /// Waits until it is done. Throws the work's error, each time.
  void wait() const { done(st_pending_wait(get(), -1)); }
  /// Waits at most so long; false: still running.
  bool wait(std::chrono::milliseconds most) const {
    st_status status = st_pending_wait(get(), most.count() < 0 ? 0 : most.count());
    if (status == ST_TIMEOUT) {  // this wait's time-out, or the one that ended a collective
      if (!is_done()) return false;
      status = st_pending_wait(get(), 0);
    }
    done(status);
    return true;
  }
  bool is_done() const {
    int32_t ended = 0;
    done(st_pending_poll(get(), &ended));
    return ended != 0;
  }

 private:
  friend class Checkpoint;
  friend class Communicator;
  friend class Model;
  friend class Trainer;
  explicit Pending(const std::shared_ptr<detail::Host>& host) : Handle(host) {}
};

}  // namespace scaletrain

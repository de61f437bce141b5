// What goes on after the call which began it.
#pragma once

#include <scaletrain/pending.h>

#include <chrono>
#include <scaletrain/handle.hpp>

namespace scaletrain {

/// Destroying it waits for the end, as std::async's future does; but with a checkpoint's save the checkpoint goes on.
class Pending : public detail::Handle<st_pending, st_pending_destroy> {
 public:
  /// Until it is done. Throws what the work failed with, each time.
  void wait() const { done(st_pending_wait(get(), -1)); }
  /// At most so long; false: still under way.
  bool wait(std::chrono::milliseconds most) const {
    st_status status = st_pending_wait(get(), most.count() < 0 ? 0 : most.count());
    if (status == ST_TIMEOUT) {  // of this wait, or what a collective ended with
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

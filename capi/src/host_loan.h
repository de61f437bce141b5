// A resource that the library borrows from the host until it releases it: memory, or the state of a callback.
#pragma once

#include "base/float_mode.h"

namespace st::capi {

/// Calls end(user) once, when the last holder is gone, from whatever thread that is. Does so only after accept(): if a call fails,
/// everything stays with the host.
class HostLoan {
 public:
  HostLoan(void (*end)(void* user), void* user) : end_(end), user_(user) {}
  ~HostLoan() {
    if (accepted_ && end_ != nullptr) call_host(end_, user_);
  }
  HostLoan(const HostLoan&) = delete;
  HostLoan& operator=(const HostLoan&) = delete;

  /// The last statement of a call: nothing after it may fail.
  void accept() noexcept { accepted_ = true; }

 private:
  void (*end_)(void* user);
  void* user_;
  bool accepted_ = false;
};

}  // namespace st::capi

// What the host lends until we say that we are done with it: memory, or what a callback stands on.
#pragma once

#include "base/float_mode.h"

namespace st::capi {

/// Calls end(user) once, when the last holder is gone, from whatever thread that is; but only for a loan that was accepted: a call that
/// failed leaves everything with the host.
class HostLoan {
 public:
  HostLoan(void (*end)(void* user), void* user) : end_(end), user_(user) {}
  ~HostLoan() {
    if (accepted_ && end_ != nullptr) call_host(end_, user_);
  }
  HostLoan(const HostLoan&) = delete;
  HostLoan& operator=(const HostLoan&) = delete;

  /// The last line of a call: nothing after it may fail.
  void accept() noexcept { accepted_ = true; }

 private:
  void (*end_)(void* user);
  void* user_;
  bool accepted_ = false;
};

}  // namespace st::capi

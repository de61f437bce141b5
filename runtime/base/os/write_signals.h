// Writing without the signals that would end a host.
#pragma once

#include <csignal>

namespace st::os {

/// While it lives, what this thread writes fails by errno alone: past the process's file size limit (ulimit -f) with EFBIG, into a pipe
/// that nobody reads with EPIPE. The signals that the system sends as well, SIGXFSZ and SIGPIPE, are blocked and discarded. A signal that
/// the host blocks itself is left to it. Keeps errno.
class WriteSignalsBlocked {
 public:
  WriteSignalsBlocked() noexcept;
  ~WriteSignalsBlocked();
  WriteSignalsBlocked(const WriteSignalsBlocked&) = delete;
  WriteSignalsBlocked& operator=(const WriteSignalsBlocked&) = delete;

 private:
  sigset_t host_;  // what this thread had blocked before
};

}  // namespace st::os

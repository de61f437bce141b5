// Writes that report errors without the signals that would end a host.
#pragma once

#include <csignal>

namespace st::os {

/// While it lives, writes of this thread fail through errno only: EFBIG past the process's file size limit (ulimit -f), EPIPE for a pipe
/// without a reader. The signals that the system also sends, SIGXFSZ and SIGPIPE, are blocked and discarded, unless the host itself blocks
/// them. Preserves errno.
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

// Gloo writes to sockets without MSG_NOSIGNAL: SIGPIPE would end the host if the other side has closed.
#pragma once

#include <csignal>
#include <ctime>

namespace st::plugin {

/// Blocks SIGPIPE, for its lifetime, on this thread and on threads that it starts. Discards a SIGPIPE raised meanwhile; one that was
/// already pending for the host stays pending.
class PipeSignal {
 public:
  PipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    sigset_t waiting;
    sigemptyset(&waiting);
    is_hosts_ = sigismember(&before_, SIGPIPE) == 1 && sigpending(&waiting) == 0 && sigismember(&waiting, SIGPIPE) == 1;
  }
  ~PipeSignal() {
    constexpr timespec kNow{0, 0};
    if (!is_hosts_) sigtimedwait(&pipe_, nullptr, &kNow);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignal(const PipeSignal&) = delete;
  PipeSignal& operator=(const PipeSignal&) = delete;

 private:
  sigset_t pipe_{}, before_{};
  bool is_hosts_ = false;
};

}  // namespace st::plugin

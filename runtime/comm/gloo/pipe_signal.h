// Gloo writes to sockets without MSG_NOSIGNAL: where the other end has closed, SIGPIPE would end the host.
#pragma once

#include <csignal>
#include <ctime>

namespace st::plugin {

/// Keeps SIGPIPE from this thread, and from threads that it starts, for its lifetime. One that came meanwhile is forgotten; one that the
/// host had kept waiting stays.
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

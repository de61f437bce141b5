#include "base/os/write_signals.h"

#include <cerrno>
#include <ctime>

namespace st::os {
namespace {

constexpr int kSignals[] = {SIGXFSZ, SIGPIPE};

}  // namespace

WriteSignalsBlocked::WriteSignalsBlocked() noexcept {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : kSignals) sigaddset(&ours, signal);
  sigprocmask(SIG_BLOCK, &ours, &host_);  // on Linux this affects the calling thread only; pthread_sigmask needs glibc 2.32 (2020)
}

WriteSignalsBlocked::~WriteSignalsBlocked() {
  const int reason = errno;
  sigset_t discarded;
  sigemptyset(&discarded);
  for (const int signal : kSignals)
    if (sigismember(&host_, signal) == 0) sigaddset(&discarded, signal);
  constexpr timespec kAtOnce{};
  while (sigtimedwait(&discarded, nullptr, &kAtOnce) > 0) continue;
  sigprocmask(SIG_SETMASK, &host_, nullptr);
  errno = reason;
}

}  // namespace st::os

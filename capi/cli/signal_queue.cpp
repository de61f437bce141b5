#include "signal_queue.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.h"

namespace cli {

SignalQueue::SignalQueue(std::initializer_list<int> signals) {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : signals) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (number == SIGCHLD) std::signal(SIGCHLD, SIG_DFL);  // if it is ignored, children leave no status
    if (number == SIGCHLD || action.sa_handler != SIG_IGN) sigaddset(&taken, number);
  }
  sigaddset(&taken, SIGPIPE);  // write() reports it instead
  descriptor_ = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) throw Failure(kFailed, std::string("signals: ") + std::strerror(errno));
  sigprocmask(SIG_BLOCK, &taken, &before_);
}

SignalQueue::~SignalQueue() {
  while (next() != 0) continue;  // otherwise a late signal would end the program now
  close(descriptor_);
  restore();
}

int SignalQueue::next() {
  signalfd_siginfo info{};
  return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

void SignalQueue::restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

}  // namespace cli

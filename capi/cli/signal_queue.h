// Signals read from a descriptor: they interrupt nothing and stay queued until they are read.
#pragma once

#include <csignal>
#include <initializer_list>
#include <string>

namespace cli {

/// Blocks and queues the signals in this thread for the object's lifetime. A signal that was ignored when the program started stays
/// ignored: nohup's SIGHUP, a background job's SIGINT.
class SignalQueue {
 public:
  explicit SignalQueue(std::initializer_list<int> signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_; }
  /// The next queued signal, 0 if none.
  int next();
  /// For a child after fork: restores the previous signal mask.
  void restore() const;

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

/// "SIGTERM".
std::string signal_name(int number);

}  // namespace cli

// Signals as something to read: they interrupt nothing, and wait until they are looked at.
#pragma once

#include <csignal>
#include <initializer_list>
#include <string>

namespace cli {

/// From its making on, in this thread, until its end. A signal that was ignored when the program started is left so: nohup's SIGHUP, a
/// background job's SIGINT.
class SignalQueue {
 public:
  explicit SignalQueue(std::initializer_list<int> signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_; }
  /// The next one that has come, 0 for none.
  int next();
  /// For a child, after fork: signals as they were.
  void restore() const;

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

/// "SIGTERM".
std::string signal_name(int number);

}  // namespace cli

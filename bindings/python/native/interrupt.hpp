// Ctrl-C in a long call: the interpreter sees a signal only between two of its instructions, so while the main thread is inside the library
// SIGINT also cancels what the context of that call is running.
#pragma once

#include <scaletrain/context.h>
#include <signal.h>

#include <atomic>

#include "object.hpp"

namespace scaletrain::python {

namespace interrupt {

inline std::atomic<st_context*> context{nullptr};  // of the call that the main thread is in
struct Previous {
  struct sigaction action;
};
inline Previous previous{};

inline void handle(int signal, siginfo_t* info, void* machine) {
  if (st_context* const running = context.load(std::memory_order_relaxed)) st_context_cancel(running);  // async-signal-safe
  if ((previous.action.sa_flags & SA_SIGINFO) != 0) {
    previous.action.sa_sigaction(signal, info, machine);
  } else {
    previous.action.sa_handler(signal);
  }
}

/// Whether SIGINT would raise KeyboardInterrupt in this thread: a program with a handler of its own means something else by it.
inline bool raises_here() {
  PyObject* const asked = registered("interrupts_here");
  if (asked == nullptr) return PyErr_Clear(), false;
  PyObject* const answer = PyObject_CallObject(asked, nullptr);
  if (answer == nullptr) return PyErr_Clear(), false;
  const bool yes = PyObject_IsTrue(answer) == 1;
  Py_DECREF(answer);
  return yes;
}

}  // namespace interrupt

/// For the time of a long call; made and ended with the interpreter's lock held.
class Interruptible {
 public:
  explicit Interruptible(st_context* context) {
    if (context == nullptr || interrupt::context.load(std::memory_order_relaxed) != nullptr || !interrupt::raises_here()) return;
    struct sigaction mine {};
    mine.sa_sigaction = interrupt::handle;
    mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&mine.sa_mask);
    if (sigaction(SIGINT, nullptr, &interrupt::previous.action) != 0) return;
    const bool is_function = (interrupt::previous.action.sa_flags & SA_SIGINFO) != 0 ||
                             (interrupt::previous.action.sa_handler != SIG_DFL && interrupt::previous.action.sa_handler != SIG_IGN);
    if (!is_function) return;
    interrupt::context.store(context, std::memory_order_relaxed);
    armed_ = sigaction(SIGINT, &mine, nullptr) == 0;
    if (!armed_) interrupt::context.store(nullptr, std::memory_order_relaxed);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() {
    if (!armed_) return;
    sigaction(SIGINT, &interrupt::previous.action, nullptr);
    interrupt::context.store(nullptr, std::memory_order_relaxed);
  }

 private:
  bool armed_ = false;
};

}  // namespace scaletrain::python

// Ctrl-C in a long call. The interpreter handles a signal only between two of its instructions. So while the main thread is inside the
// library, SIGINT also cancels the calls that run in the context of that call.
#pragma once

#include <scaletrain/context.h>
#include <signal.h>

#include <atomic>

#include "object.hpp"

namespace scaletrain::python {

namespace interrupt {

inline std::atomic<st_context*> context{nullptr};  // the context of the main thread's running call
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

/// Whether SIGINT would raise KeyboardInterrupt in this thread. It does not if the program has installed its own handler.
inline bool raises_here() {
  static const Object known =
      borrowed(registered("interrupts"));  // main thread, getsignal, its arguments, default_int_handler; never freed
  if (!known) return PyErr_Clear(), false;
  static const unsigned long main_thread = PyLong_AsUnsignedLong(PyTuple_GetItem(known.get(), 0));
  if (PyThread_get_thread_ident() != main_thread) return false;
  PyObject* const handler = PyObject_CallObject(PyTuple_GetItem(known.get(), 1), PyTuple_GetItem(known.get(), 2));
  if (handler == nullptr) return PyErr_Clear(), false;
  Py_DECREF(handler);
  return handler == PyTuple_GetItem(known.get(), 3);
}

/// Installs handle() in front of the interpreter's handler, unless it is already. It stays installed; outside a long call it only passes
/// on.
inline bool install() {
  struct sigaction now {};
  if (sigaction(SIGINT, nullptr, &now) != 0) return false;
  const bool has_info = (now.sa_flags & SA_SIGINFO) != 0;
  if (has_info && now.sa_sigaction == handle) return true;
  if (!has_info && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return false;
  previous.action = now;
  struct sigaction mine {};
  mine.sa_sigaction = handle;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&mine.sa_mask);
  return sigaction(SIGINT, &mine, nullptr) == 0;
}

}  // namespace interrupt

/// Makes a long call interruptible. Create and destroy it with the interpreter's lock held.
class Interruptible {
 public:
  explicit Interruptible(st_context* context) {
    if (context == nullptr || interrupt::context.load(std::memory_order_relaxed) != nullptr) return;
    armed_ = interrupt::raises_here() && interrupt::install();
    if (armed_) interrupt::context.store(context, std::memory_order_relaxed);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() {
    if (armed_) interrupt::context.store(nullptr, std::memory_order_relaxed);
  }

 private:
  bool armed_ = false;
};

}  // namespace scaletrain::python

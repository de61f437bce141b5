// Worker threads of one rank. Work is cut into tasks by problem size, never by the number of threads, so results do not depend on it.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace st {

/// The host's own parallel-for: calls task(arg, i) for every i < n in any order on any threads, returns when all are done.
struct HostParallel {
  void (*run)(void* user, int64_t n, void (*task)(void* arg, int64_t i), void* arg) = nullptr;
  void* user = nullptr;
};

class Workers {
 public:
  /// threads >= 1 counts the caller, which works too. With `host`, no thread is started and `threads` is only a hint for task sizes.
  explicit Workers(int threads, HostParallel host = {});
  virtual ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return threads_; }

  /// Calls body(i) once for each i in [0, tasks); returns when all are done. A task's exception is rethrown here after the others ended.
  /// No task may wait for another. Allocates nothing. One caller at a time; nested calls run serially in the calling task.
  template <class Body>
  void run(int64_t tasks, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_raw(
        tasks, [](void* arg, int64_t i) { (*static_cast<Plain*>(arg))(i); }, const_cast<void*>(static_cast<const void*>(&body)));
  }

  /// Cuts [0, n) into ranges of `grain` and calls body(begin, end) for each. The ranges depend on n and grain only.
  template <class Body>
  void run_range(int64_t n, int64_t grain, Body&& body) {
    run((n + grain - 1) / grain, [&](int64_t i) {
      const int64_t begin = i * grain;
      body(begin, begin + grain < n ? begin + grain : n);
    });
  }

 private:
  /// Virtual so that a plug-in, which has a copy of this code, runs the library's: it knows which threads are inside a task.
  virtual void run_raw(int64_t tasks, void (*task)(void* arg, int64_t i), void* arg);

  struct Pool;
  std::unique_ptr<Pool> pool_;
  HostParallel host_;
  int threads_;
};

}  // namespace st

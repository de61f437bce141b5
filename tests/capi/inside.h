// Runs code in the middle of a call: in the host's parallel-for, which is called while a kernel runs.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "held.h"

namespace st::test {

/// A context whose parallel-for counts its calls and runs an action in one of them, from its own thread.
class Inside {
 public:
  Inside() : options_(filled(st_context_options_init)) {
    options_.parallel = [](void* user, int64_t n, st_task_fn task, void* arg) { static_cast<Inside*>(user)->run(n, task, arg); };
    options_.parallel_user = this;
    options_.threads = 2;  // with one thread, the default on one core, it would not be called
  }
  const st_context_options* options() const { return &options_; }
  int64_t calls() const { return calls_; }
  /// Acts in the `call`-th call from now, counted from 0.
  void then(int64_t call, std::function<void()> act) {
    calls_ = 0;
    at_ = call;
    act_ = std::move(act);
  }

 private:
  void run(int64_t n, st_task_fn task, void* arg) {
    if (calls_++ == at_) std::thread(act_).join();
    for (int64_t i = 0; i < n; ++i) task(arg, i);
  }
  st_context_options options_;
  int64_t calls_ = 0, at_ = -1;
  std::function<void()> act_;
};

}  // namespace st::test

#include "base/workers.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/heap.h"
#include "base/os/machine.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace st {
namespace {

// Long enough to bridge the gap between two kernels of a step, short enough that an idle trainer costs nothing.
constexpr auto kSpin = std::chrono::microseconds(30);

// Threads of all pools of this process that have work or spin, callers included. Ranks as threads share the cores, so a spinning thread of
// one rank would take a core that another rank needs. Sleeping threads are not counted: the pool of a context sleeps while a plan's own
// pool works.
alignas(64) std::atomic<int> awake{0};

/// One more thread is awake.
class Awake {
 public:
  Awake() { awake.fetch_add(1, std::memory_order_relaxed); }
  ~Awake() { awake.fetch_sub(1, std::memory_order_relaxed); }
  Awake(const Awake&) = delete;
  Awake& operator=(const Awake&) = delete;
};

thread_local bool inside_task = false;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

/// Waits for `word` to differ from `old`: spins first, then sleeps. The calling thread is counted in `awake`.
void wait_while(const std::atomic<uint32_t>& word, uint32_t old, bool spin) {
  if (spin) {
    const auto end = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 32; ++i) {
        if (word.load(std::memory_order_acquire) != old) return;
        pause();
      }
    } while (std::chrono::steady_clock::now() < end);
  }
  awake.fetch_sub(1, std::memory_order_relaxed);
  word.wait(old, std::memory_order_acquire);
  awake.fetch_add(1, std::memory_order_relaxed);
}

/// Keeps the exception of the lowest task, so that the error thrown does not depend on the number of threads.
class FirstError {
 public:
  void keep(int64_t task) noexcept {
    const std::lock_guard lock(mutex_);
    if (task >= task_) return;
    task_ = task;
    error_ = std::current_exception();
  }
  void rethrow() {
    if (!error_) return;
    task_ = std::numeric_limits<int64_t>::max();
    std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::mutex mutex_;
  int64_t task_ = std::numeric_limits<int64_t>::max();
  std::exception_ptr error_;
};

class InsideTask {
 public:
  InsideTask() : outer_(std::exchange(inside_task, true)) {}
  ~InsideTask() { inside_task = outer_; }
  InsideTask(const InsideTask&) = delete;
  InsideTask& operator=(const InsideTask&) = delete;

 private:
  bool outer_;
};

struct Job {
  int64_t tasks = 0;
  void (*task)(void* arg, int64_t i) = nullptr;
  void* arg = nullptr;
};

void call(const Job& job, int64_t i, FirstError& error) {
  try {
    job.task(job.arg, i);
  } catch (...) {
    error.keep(i);
  }
}

void run_serially(const Job& job) {
  const InsideTask inside;
  FirstError error;
  for (int64_t i = 0; i < job.tasks; ++i) call(job, i, error);
  error.rethrow();
}

struct HostJob {
  const Job& job;
  FirstError& error;
  Heap* heap;
};

// An exception must not pass through the host's frames, and the host's threads have their own floating-point mode.
void host_task(void* arg, int64_t i) {
  const FloatMode mode;
  const InsideTask inside;
  const auto& host = *static_cast<HostJob*>(arg);
  const HeapScope owners(host.heap);
  call(host.job, i, host.error);
}

void run_by_host(const HostParallel& host, const Job& job) {
  FirstError error;
  HostJob wrapped{job, error, Heap::current()};
  call_host(host.run, host.user, job.tasks, host_task, &wrapped);
  error.rethrow();
}

}  // namespace

// A job is published through a gate: an `open` bit and the number of workers inside. Workers enter only while it is open. The caller closes
// it when all tasks are claimed and waits for the workers inside. So a worker that wakes late is not waited for, and the job's fields
// change only while the gate is closed and empty.
struct Workers::Pool {
  static constexpr uint32_t kOpen = 1U << 31;

  explicit Pool(int helpers) : shares(static_cast<size_t>(helpers) + 1) {
    try {
      threads.reserve(static_cast<size_t>(helpers));
      for (int i = 1; i <= helpers; ++i) threads.emplace_back([this, i, heap = Heap::current()] { work(i, heap); });
    } catch (const std::system_error& refusal) {
      const auto started = threads.size();
      stop();
      fail(Code::unavailable, text("workers: thread ", started + 1, " of ", helpers, " cannot be started (", refusal.what(),
                                   "); ask for fewer threads or raise the process limit"));
    } catch (...) {
      stop();  // no memory for a thread: stop the running ones before their handles are destroyed
      throw;
    }
  }
  ~Pool() { stop(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(const Job& next_job) {
    assert(gate.load() == 0 && "one caller at a time");
    const Awake caller;
    job = next_job;
    share_out();
    gate.store(kOpen);
    round.fetch_add(1);
    wake(job.tasks - 1);
    {
      const InsideTask inside;
      claim(0);
    }
    for (uint32_t now = gate.fetch_and(~kOpen) & ~kOpen; now != 0; now = gate.load(std::memory_order_acquire))
      wait_while(gate, now, spins());
    error.rethrow();
  }

 private:
  /// The tasks of one thread, next to each other, up to `end`. Other threads take tasks from here when their own shares are done.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void work(int thread, Heap* heap) {
    const Awake helper;
    const HeapScope owners(heap);
    start_in_default_float_mode();
    const FloatMode mode;
    inside_task = true;
    for (uint32_t seen = 0;;) {
      wait_while(round, seen, spins());
      seen = round.load(std::memory_order_acquire);
      if (stopping.load(std::memory_order_acquire)) return;
      if (!enter()) continue;
      claim(thread);
      if (gate.fetch_sub(1) == 1) gate.notify_one();  // closed and now empty: the caller may be asleep at the join
    }
  }

  bool enter() {
    uint32_t now = gate.load(std::memory_order_acquire);
    while ((now & kOpen) != 0)
      if (gate.compare_exchange_weak(now, now + 1)) return true;
    return false;
  }

  /// Equal shares, in the order of the threads. Data that a thread wrote in one job is then likely to be in its cache in the next one: rows
  /// are cut in the same places, however many tasks they make.
  void share_out() {
    used = std::min(static_cast<int64_t>(shares.size()), job.tasks);
    const int64_t each = job.tasks / used, more = job.tasks % used;
    int64_t first = 0;
    for (int64_t i = 0; i < used; ++i) {
      Share& share = shares[static_cast<size_t>(i)];
      share.next.store(first, std::memory_order_relaxed);
      first += each + (i < more ? 1 : 0);
      share.end = first;
    }
  }

  void claim(int thread) {
    for (int64_t i = 0; i < used; ++i) {
      Share& share = shares[static_cast<size_t>((thread + i) % used)];
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const int64_t task = share.next.fetch_add(1, std::memory_order_relaxed);
        if (task < share.end) call(job, task, error);
      }
    }
  }

  void wake(int64_t wanted) {
    if (wanted >= static_cast<int64_t>(threads.size())) return round.notify_all();
    for (int64_t i = 0; i < wanted; ++i) round.notify_one();
  }

  bool spins() const { return awake.load(std::memory_order_relaxed) <= cores; }

  void stop() {
    stopping.store(true);
    round.fetch_add(1);
    round.notify_all();
    for (auto& thread : threads) thread.join();
  }

  // One cache line each, since many threads write them.
  alignas(64) std::atomic<uint32_t> round{0};  // jobs published so far
  alignas(64) std::atomic<uint32_t> gate{0};
  alignas(64) Job job;
  int64_t used = 0;  // shares of this job
  std::vector<Share> shares;
  FirstError error;
  std::atomic<bool> stopping{false};
  const int cores = os::available_cores();
  std::vector<std::thread> threads;
};

Workers::Workers(int threads, HostParallel host) : host_(host), threads_(threads) {
  check(threads >= 1 && threads <= 4096, "workers: threads must be 1 to 4096, got ", threads);
  if (!host_.run && threads > 1) pool_ = std::make_unique<Pool>(threads - 1);
}

Workers::~Workers() = default;

void Workers::run_raw(int64_t tasks, void (*task)(void* arg, int64_t i), void* arg) {
  const Job job{tasks, task, arg};
  if (tasks <= 1 || inside_task || (!pool_ && !host_.run)) return run_serially(job);
  if (host_.run) return run_by_host(host_, job);
  pool_->run(job);
}

}  // namespace st

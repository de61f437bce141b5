// Runs work in the order of posting, on a thread of its own or on the one that waits for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

namespace st {

/// The queue's own thread runs the items while the thread that posted them computes; a thread that waits runs what has not begun. Two items
/// never run at the same time. Only one thread may post at a time; any may wait for an item. Posting allocates nothing.
class WorkQueue {
 public:
  /// An item. Must live until it is done; may be posted again then.
  class Work {
   public:
    Work() = default;
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    /// On either thread. An exception is kept for wait(); without one the queue does not touch the item any more.
    virtual void run() = 0;

   protected:
    ~Work() = default;

   private:
    friend class WorkQueue;
    Work* next_ = nullptr;
    uint64_t number_ = 0;  // of its last post
    uint64_t cancels_ = 0;
    std::exception_ptr error_;
  };

  WorkQueue() = default;
  /// Finishes all posted work first.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// From now on an item runs as a call that began when it was posted: first `of_call` gets what `now` was then. Both are borrowed.
  void count_cancels(const std::atomic<uint64_t>& now, std::atomic<uint64_t>& of_call);

  /// Starts the thread, once. Throws unavailable if none can be started.
  void start();
  bool has_thread() const { return thread_.joinable(); }
  /// Throws like start(), before anything is posted.
  void post(Work& work);

  bool is_done(const Work& work) const { return done_.load(std::memory_order_acquire) >= work.number_; }
  bool is_idle() const { return done_.load(std::memory_order_acquire) == posted_; }
  /// Waits for the last post of `work`. Throws what that threw, each time.
  void wait(const Work& work);
  /// The same without its error, as before the item ends.
  void finish(const Work& work) {
    if (!is_done(work)) wait_until(work.number_);
  }
  /// Waits for all posted work, without its errors.
  void drain() {
    if (!is_idle()) wait_until(posted_);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void thread_main();
  void run_first(Lock& lock);
  void wait_until(uint64_t number);

  const std::atomic<uint64_t>* cancels_now_ = nullptr;
  std::atomic<uint64_t>* cancels_of_call_ = nullptr;
  std::mutex mutex_;
  std::condition_variable came_, ended_;
  uint64_t posted_ = 0;            // items so far
  std::atomic<uint64_t> done_{0};  // written under the mutex
  // Under the mutex.
  Work* first_ = nullptr;  // not begun
  Work* last_ = nullptr;
  bool runs_ = false;  // an item is under way
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace st

// Runs work items one after the other, in the order of posting, while the posting thread continues.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "base/pending.h"

namespace st {

/// Its thread starts with the first item. Only one thread may post at a time. Posting allocates if there is no room, and for work that
/// std::function does not hold in itself.
class WorkQueue {
  struct Item {
    std::function<void()> work;
    Pending* pending = nullptr;
  };

 public:
  WorkQueue() = default;
  /// Finishes all posted work first.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// An item with everything that post() needs, so that posting cannot fail.
  class Prepared {
    friend class WorkQueue;
    std::list<Item> item_;
  };
  /// Throws unavailable when the thread cannot be started.
  Prepared prepare(std::function<void()> work);
  /// Makes room for so many items at the same time, if there is less.
  void make_room(size_t items);
  /// `pending` is completed when the item is done and must live until then. The work and all that it holds is destroyed before that.
  void post(Prepared prepared, Pending& pending) noexcept;

  /// Returns when all posted work is done.
  void drain();

 private:
  void run();
  void start();

  std::mutex mutex_;
  std::condition_variable came_, done_;
  std::list<Item> items_, spare_;
  size_t room_ = 0;  // items in existence
  size_t left_ = 0;  // including the running one
  bool over_ = false;
  std::thread thread_;
};

}  // namespace st

// Pieces of work that are done one after the other, in the order in which they came, while whoever posted them goes on.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "base/pending.h"

namespace st {

/// A thread of its own, started for the first piece, does the work. Posted to by one thread at a time.
class WorkQueue {
  struct Piece {
    std::function<void()> work;
    Pending* pending = nullptr;
  };

 public:
  WorkQueue() = default;
  /// Does what is left first.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// A piece with all that it needs to be posted: what is prepared cannot fail to be.
  class Prepared {
    friend class WorkQueue;
    std::list<Piece> piece_;
  };
  /// Throws unavailable when the thread cannot be started.
  Prepared prepare(std::function<void()> work);
  /// `pending` is told when it is done, and lives until then. The work is let go of, with all that it holds, before that.
  void post(Prepared prepared, Pending& pending) noexcept;

  /// Returns when all that was posted is done.
  void drain();

 private:
  void run();
  void start();

  std::mutex mutex_;
  std::condition_variable came_, done_;
  std::list<Piece> pieces_;
  size_t left_ = 0;  // the one under way too
  bool over_ = false;
  std::thread thread_;
};

}  // namespace st

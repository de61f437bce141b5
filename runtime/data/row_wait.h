// Records which thread waits for rows of which callback, so that callbacks that wait for each other's rows fail instead of hanging.
#pragma once

#include <chrono>
#include <thread>

namespace st {

class CallbackRows;

/// This thread waits, or is about to wait, for rows of `maker` (null: rows that need no callback). Lives on the stack; allocates nothing.
class RowWait {
 public:
  static constexpr std::chrono::milliseconds kLook{1};  // a waiting thread repeats the check at this interval

  explicit RowWait(const CallbackRows* maker);
  ~RowWait();
  RowWait(const RowWait&) = delete;
  RowWait& operator=(const RowWait&) = delete;

  /// Whether the callback for these rows runs on this thread, or waits for rows whose callback does, through any number of others: a
  /// deadlock. It can arise after this check, so a waiting thread repeats it.
  bool is_for_itself() const;

 private:
  const CallbackRows* maker_;
  std::thread::id waiter_;
  RowWait *before_ = nullptr, *after_ = nullptr;  // list of all waits, under one mutex
};

}  // namespace st

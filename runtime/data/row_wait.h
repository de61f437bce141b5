// Who waits for rows that a callback of the host's makes: so that callbacks which wait for each other's rows are told, and do not hang.
#pragma once

#include <chrono>
#include <thread>

namespace st {

class CallbackRows;

/// This thread waits, or is about to, for rows of `maker` (null: rows that nobody has to make). Allocates nothing; on the stack.
class RowWait {
 public:
  static constexpr std::chrono::milliseconds kLook{1};  // who waits looks again after so long

  explicit RowWait(const CallbackRows* maker);
  ~RowWait();
  RowWait(const RowWait&) = delete;
  RowWait& operator=(const RowWait&) = delete;

  /// The callback that makes the rows is called on this thread, or waits for rows whose callback is, through any number of others: it
  /// cannot return before this thread goes on. A circle may close after this was asked, so who waits asks again.
  bool is_for_itself() const;

 private:
  const CallbackRows* maker_;
  std::thread::id waiter_;
  RowWait *before_ = nullptr, *after_ = nullptr;  // all that wait, under one mutex
};

}  // namespace st

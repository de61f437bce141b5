#include "data/row_wait.h"

#include <mutex>

#include "data/callback_rows.h"

namespace st {
namespace {

constinit std::mutex waits_mutex;
constinit RowWait* waits = nullptr;  // under the mutex

}  // namespace

RowWait::RowWait(const CallbackRows* maker) : maker_(maker), waiter_(std::this_thread::get_id()) {
  if (maker_ == nullptr) return;
  const std::lock_guard lock(waits_mutex);
  after_ = waits;
  if (after_ != nullptr) after_->before_ = this;
  waits = this;
}

RowWait::~RowWait() {
  if (maker_ == nullptr) return;
  const std::lock_guard lock(waits_mutex);
  (before_ != nullptr ? before_->after_ : waits) = after_;
  if (after_ != nullptr) after_->before_ = before_;
}

bool RowWait::is_for_itself() const {
  if (maker_ == nullptr) return false;
  const std::lock_guard lock(waits_mutex);
  size_t left = 1;  // number of waits: a longer chain is a cycle of other threads, which detect it themselves
  for (const RowWait* wait = waits; wait != nullptr; wait = wait->after_) ++left;
  for (const CallbackRows* maker = maker_; left > 0; --left) {
    const std::thread::id filler = maker->filler();
    if (filler == waiter_) return true;
    if (filler == std::thread::id()) return false;
    const RowWait* next = waits;
    while (next != nullptr && next->waiter_ != filler) next = next->after_;
    if (next == nullptr) return false;
    maker = next->maker_;
  }
  return false;
}

}  // namespace st

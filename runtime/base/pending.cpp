#include "base/pending.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/heap.h"

namespace st {

Pending::Pending(std::function<void()> work) {
  try {
    thread_ = std::thread([this, heap = Heap::current(), work = std::move(work)]() mutable {
      start_in_default_float_mode();
      const FloatMode mode;
      const HeapScope owners(heap);
      run(std::move(work));
    });
  } catch (const std::system_error& refusal) {
    fail(Code::unavailable,
         text("pending: cannot start a thread (", refusal.what(), "); raise the limit on threads or processes, or use the blocking call"));
  }
}

Pending::~Pending() {
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return done_; });
}

void Pending::begin() {
  const std::lock_guard lock(mutex_);
  done_ = false;
}

void Pending::end(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  done_ = true;
  ended_.notify_all();
}

void Pending::run(std::function<void()> work) {
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  work = nullptr;
  end(std::move(error));
}

bool Pending::is_done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

bool Pending::wait(int64_t milliseconds) const {
  constexpr int64_t kMost = int64_t{1} << 40;  // above it the clock's arithmetic would overflow
  std::unique_lock lock(mutex_);
  if (milliseconds < 0)
    ended_.wait(lock, [&] { return done_; });
  else if (!ended_.wait_for(lock, std::chrono::milliseconds(std::min(milliseconds, kMost)), [&] { return done_; }))
    return false;
  if (!error_) return true;
  error_reported_ = true;
  std::rethrow_exception(error_);
}

std::exception_ptr Pending::unreported_error() const {
  const std::lock_guard lock(mutex_);
  return error_reported_ ? nullptr : error_;
}

}  // namespace st

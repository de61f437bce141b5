#include "backend/host_order.h"

#include <utility>

#include "base/error.h"

namespace st {

void HostOrder::use(int64_t handle) {
  check(handle != kPerThread, "stream: ", handle,
        " is another stream on each thread, and ranks wait for it on the library's threads; give ", kLegacy,
        " for the default stream, or one of your own");
  auto adopted = handle == kNone ? nullptr : backend_.adopt(handle);
  const std::lock_guard lock(mutex_);
  hosts_ = std::move(adopted);
  handle_ = handle;
}

int64_t HostOrder::handle() const {
  const std::lock_guard lock(mutex_);
  return handle_;
}

/// The caller holds the mutex, and there is a stream.
void HostOrder::record_hosts() {
  if (!hosts_) hosts_ = backend_.adopt(handle_);
  if (!point_) point_ = backend_.make_event();
  hosts_->record(*point_);
}

void HostOrder::precede(Stream& ours) {
  const std::lock_guard lock(mutex_);
  if (handle_ == kNone) return;
  record_hosts();
  ours.wait(*point_);
}

void HostOrder::connect(int64_t before, int64_t after) {
  if (before == kNone || after == kNone || before == after) return;
  const auto first = backend_.adopt(before), second = backend_.adopt(after);
  const auto point = backend_.make_event();
  first->record(*point);
  second->wait(*point);
}

/// The stream of our copies, after the host's work. The caller holds the mutex.
Stream& HostOrder::copies() {
  if (!copies_) copies_ = backend_.make_stream();
  if (handle_ != kNone) {
    record_hosts();
    copies_->wait(*point_);
  }
  return *copies_;
}

void HostOrder::copy(Address to, Address from, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  copies().copy(to, from, bytes);
  copies_->finish();
}

void HostOrder::to_host(void* host, Address from, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  copies().finish();
  backend_.to_host(host, from, bytes);
}

void HostOrder::to_device(Address to, const void* host, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  copies().finish();
  backend_.to_device(to, host, bytes);
}

}  // namespace st

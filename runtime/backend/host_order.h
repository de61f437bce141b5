// The order of a host's own work on a device and ours.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "backend/backend.h"
#include "base/host_view.h"

namespace st {

/// The place of a view that is on the device.
inline Address place_of(const HostView& view) { return {reinterpret_cast<uintptr_t>(view.data)}; }

/// The host writes and reads arrays of the device on a stream of its own. Calls that use them wait for it by events, on the device; what
/// they do themselves is done when they return. Safe to call from several threads.
class HostOrder {
 public:
  /// kLegacy: CUDA's default stream, as in DLPack. kNone: no order, the host has waited for its work.
  static constexpr int64_t kLegacy = 1, kNone = -1;
  /// CUDA's default stream of each thread, in which only a thread's own calls have an order: connect() takes it, use() does not.
  static constexpr int64_t kPerThread = 2;

  /// Borrows the backend. The stream is kLegacy until use().
  explicit HostOrder(Backend& backend) : backend_(backend) {}

  /// Makes `handle` the host's stream. Throws as Backend::adopt(); the stream stays the same then.
  void use(int64_t handle);
  int64_t handle() const;

  /// Work that `ours` is given from now on runs after all that the host's stream has been given.
  void precede(Stream& ours);
  /// Work that the second stream is given from now on runs after all that the first has been given. Both are the host's.
  void connect(int64_t before, int64_t after);

  /// Copies now, after all that the host's stream has been given. Ranges do not overlap.
  void copy(Address to, Address from, int64_t bytes);
  void to_host(void* host, Address from, int64_t bytes);
  void to_device(Address to, const void* host, int64_t bytes);

 private:
  void record_hosts();
  Stream& copies();

  Backend& backend_;
  mutable std::mutex mutex_;
  int64_t handle_ = kLegacy;
  std::unique_ptr<AdoptedStream> hosts_;  // null: not needed so far
  std::unique_ptr<Event> point_;          // likewise; of the host's stream
  std::unique_ptr<Stream> copies_;        // likewise
};

}  // namespace st

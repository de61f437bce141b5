// The device's memory that a rank lets other ranks read: during a collective, or as a message.
#pragma once

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace st {

/// Contiguous elements in a device's memory.
struct DevicePiece {
  Address data;
  int64_t elements = 0;
  int32_t tensor = 0;  // of those of a collective, in order
};
using DevicePieces = std::vector<DevicePiece>;

/// The ranks are threads of one process. They give each other the number of an offer, and find it by that; whoever has found one owns it
/// too, so that a rank may end while another one looks at its offer. The memory itself is the rank's: it may write or free what it has
/// offered once its streams have waited for the events that readers record, or withdraw() has returned.
class DeviceOffer : public std::enable_shared_from_this<DeviceOffer> {
 public:
  /// `ranks`: how many may read it.
  static std::shared_ptr<DeviceOffer> make(Backend& backend, int ranks);
  /// Null: the rank has ended.
  static std::shared_ptr<DeviceOffer> find(uint64_t number);
  ~DeviceOffer();
  DeviceOffer(const DeviceOffer&) = delete;
  DeviceOffer& operator=(const DeviceOffer&) = delete;

  uint64_t number() const { return number_; }
  const Backend& backend() const { return backend_; }

  // The rank's own calls.

  /// Offers `parts`, which are as other ranks expect them of the collective or message, from the point at which `is_written` is recorded.
  /// Borrowed until all ranks have met, or the message has been taken, or withdraw(). No rank may still read what was offered before.
  void open(std::span<const DevicePieces> parts);
  /// After an error: no rank reads the memory after it returns.
  void withdraw() noexcept;

  // The other ranks' calls, between the two rounds of a meeting, or while a message is taken.

  /// Whether `rank` may read until end_reading(); not if the offer is withdrawn. It records `has_read` between the two calls.
  bool begin_reading(int rank, std::shared_ptr<Event> has_read);
  void end_reading() { mutex_.unlock_shared(); }
  const DevicePieces& part(size_t i) const { return parts_[i]; }

  const std::shared_ptr<Event> is_written;  // recorded by the rank: its parts have their values
  // Recorded when the parts have been read: in a collective by the rank as a reader of the others' parts; of a message by its receiver.
  const std::shared_ptr<Event> is_read;

 private:
  DeviceOffer(Backend& backend, int ranks);

  Backend& backend_;
  const uint64_t number_;
  std::span<const DevicePieces> parts_;
  std::shared_mutex mutex_;  // shared by those who read
  bool is_withdrawn_ = true;
  std::vector<std::shared_ptr<Event>> readers_;  // by rank: after which it has read
};

}  // namespace st

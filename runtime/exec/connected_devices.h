// A rank's end of a group of devices, and the turn of its device, which the groups of a rank share.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "backend/device_group.h"
#include "backend/device_stream.h"
#include "comm/communicator.h"

namespace st {

/// Held by the one group whose operation a device has under way. A network promises no progress for more (README.md).
class DeviceTurn {
 public:
  /// Whether the caller has it now; from any thread.
  bool take() { return !is_taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { is_taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_taken_{false};
};

/// Gives the turn back at its end, if it was taken.
class HeldTurn {
 public:
  explicit HeldTurn(DeviceTurn& turn) : turn_(turn) {}
  ~HeldTurn() {
    if (is_held_) turn_.give_back();
  }
  HeldTurn(const HeldTurn&) = delete;
  HeldTurn& operator=(const HeldTurn&) = delete;

  bool take() { return is_held_ = is_held_ || turn_.take(); }

 private:
  DeviceTurn& turn_;
  bool is_held_ = false;
};

/// exchange() and run_native() need the turn, which the caller keeps until the device has run what that gave.
class ConnectedDevices final : public DeviceGroup {
 public:
  ConnectedDevices(std::unique_ptr<DeviceGroup> devices, std::shared_ptr<DeviceTurn> turn)
      : devices_(std::move(devices)), turn_(std::move(turn)) {}
  /// Those of ranks that connect_devices() has connected (device_connection.h).
  static ConnectedDevices& of(const Communicator& ranks) { return static_cast<ConnectedDevices&>(*ranks.devices()); }

  DeviceTurn& turn() { return *turn_; }

  std::string_view name() const override { return devices_->name(); }
  void exchange(Stream& stream, std::span<const Part> sends, std::span<const Part> receives) override {
    devices_->exchange(stream, sends, receives);
  }
  void run_native(Stream& stream, std::span<const Native> calls) override { devices_->run_native(stream, calls); }
  bool is_ready() override { return devices_->is_ready(); }
  /// Whether the device has passed `end`, recorded after what was given last. Throws like is_ready().
  bool has_run(Event& end) {
    const bool has_passed = end.has_passed();  // first, so that is_ready() throws the error of an operation that has just ended
    return is_ready() && has_passed;
  }
  void abort() noexcept override { devices_->abort(); }

 private:
  const std::unique_ptr<DeviceGroup> devices_;
  const std::shared_ptr<DeviceTurn> turn_;
};

}  // namespace st

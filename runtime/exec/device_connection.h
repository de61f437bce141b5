// How ranks that are processes, or have devices of their own, exchange the memory of devices.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "exec/connected_devices.h"

namespace st {

struct DeviceConnection {
  std::unique_ptr<DeviceNetwork> network;  // null: none, so that memory passes through the host, if ranks share no device
  std::string text;                        // a line for people: "devices exchange over nccl 2.28.9", or why not
  bool is_hindered = false;                // the host's memory was not asked for: something is in the way of a network
};

/// The way that all ranks use, of a device with memory of its own. Collective call. The variable SCALETRAIN_DEVICE_EXCHANGE of any rank
/// decides:
///   auto    the network, where all ranks have the same version of it and each a device to itself; the default
///   host    the host's memory
///   device  the network; throws unavailable on all ranks, with what is missing on which rank
DeviceConnection connection_of(Communicator& ranks, Backend& backend);

/// Connects the devices of all ranks of a communicator. `turn`: of this rank's device, the same for all that it is connected by. Collective
/// call. Throws what the communicator throws, and unavailable, with the network's words, on the rank whose start fails.
void connect_devices(Communicator& ranks, DeviceNetwork& network, std::shared_ptr<DeviceTurn> turn);

}  // namespace st

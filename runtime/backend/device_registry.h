// Devices by name: the built-in ones, and those that plug-ins bring (backend_plugin.h).
// The plug-in of device NAME is libscaletrain_NAME.so, with _ for each - of the name, in the folder SCALETRAIN_BACKEND_PATH, else in this
// library's folder. If that variable is a file, it is a plug-in whose devices are all found. A plug-in is loaded when its device is asked
// for or listed, and never unloaded.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/needs.h"

namespace st {

struct ListedDevice {
  std::string name;
  int count = 0;         // of this machine
  std::string why_none;  // one line; of devices that are there: what they go without, or empty
  // The network between such devices of several ranks: its name, the version that is found, or why none is. Without a name there is none.
  std::string network = {}, network_version = {}, why_no_network = {};
};

/// The built-in devices, those that have a plug-in (cuda), and all at SCALETRAIN_BACKEND_PATH, which it loads. A plug-in that is refused is
/// listed with the reason.
std::vector<ListedDevice> listed_devices();

/// Those that have the form of INDEX, in words for errors.
constexpr std::string_view kDeviceIndices = "a whole number from 0 to 999999999";

/// Whether `device` has the form NAME or NAME:INDEX.
bool is_device_name(std::string_view device);

/// Device NAME:INDEX; without an index the first. Buffers are counted by `memory`; null: by the backend. Throws invalid_argument for an
/// unknown device (with those that are known) or an index that this machine does not have; unavailable, with the reason and the files that
/// were looked for, if it has none or the plug-in is missing, is none, or is of another build.
std::unique_ptr<Backend> open_device(const std::string& device, std::shared_ptr<MemorySource> memory);

/// Needs of the kernels of a plug-in's device, by name, once open_device() has opened one; null: unknown.
const DeviceNeeds* needs_of_plugin(std::string_view name);

}  // namespace st

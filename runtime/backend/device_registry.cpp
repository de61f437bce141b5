#include "backend/device_registry.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <limits>
#include <span>
#include <utility>

#include "backend/backend_plugin.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/os/files.h"
#include "base/os/loaded_library.h"
#include "base/text.h"

namespace st {
namespace {

int always_one(std::string& /*why_none*/) { return 1; }

template <auto kMake>
std::unique_ptr<Backend> open_only(int /*index*/, std::shared_ptr<MemorySource> memory) {
  return kMake(std::move(memory));
}

constexpr std::array<DeviceMaker, 2> kBuiltIn = {{{"cpu", always_one, open_only<make_cpu_backend>, &cpu_needs},
                                                  {"reference", always_one, open_only<make_reference_backend>, &reference_needs}}};

/// Devices that this version has a plug-in for.
constexpr std::array<std::string_view, 1> kInPlugins = {"cuda"};

constexpr std::string_view kPrefix = "libscaletrain_", kSuffix = ".so";
constexpr int32_t kMostDevices = 64;                    // of a plug-in: more is no table of devices
constexpr size_t kLongestName = 32, kLongestIndex = 9;  // digits, as kDeviceIndices says

/// Rows of plug-ins' devices that were opened. A table without a destructor: models may outlive the library's statics.
constinit std::array<std::atomic<const DeviceMaker*>, kMostDevices> opened{};

void remember(const DeviceMaker& maker) {
  for (auto& place : opened) {
    const DeviceMaker* there = nullptr;
    if (place.compare_exchange_strong(there, &maker) || there == &maker) return;
  }
  fail(Code::unavailable, text("context: more than ", kMostDevices, " kinds of devices"));
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

const DeviceMaker* find_in(std::span<const DeviceMaker> devices, std::string_view name) {
  const auto found = std::ranges::find_if(devices, [&](const DeviceMaker& maker) { return maker.name == name; });
  return found == devices.end() ? nullptr : std::to_address(found);
}

std::string name_of_build(const char* build) { return build == nullptr ? "unknown" : build; }

void check_device(const std::string& file, const DeviceMaker& maker) {
  const std::string_view name = maker.name == nullptr ? "" : maker.name;
  require(is_name(name), Code::unavailable, file, ": its table of devices has an invalid name; names are 1 to 32 of a-z, 0-9, _ and -");
  require(find_in(kBuiltIn, name) == nullptr, Code::unavailable, file, ": it names a device ", name, ", which the library has built in");
  require(maker.count != nullptr && maker.open != nullptr, Code::unavailable, file, ": its device ", name, " lacks ",
          maker.count == nullptr ? "count" : "open");
}

/// Runs a plug-in's code that is outside a Backend. Only an Error leaves it.
template <class Call>
auto ask_plugin(const std::string& file, const Call& call) {
  const HostsFloatMode mode;  // for threads that it starts
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& why) {
    fail(Code::unavailable, text(file, ": ", why.what()));
  } catch (...) {
    fail(Code::unavailable, text(file, ": it threw an exception of an unknown kind"));
  }
}

/// The devices of a plug-in. Throws unavailable with the file and the reason.
std::span<const DeviceMaker> devices_in(const std::string& file) {
  // Without a slash the loader would look for it elsewhere.
  const os::LoadedLibrary library(file.find('/') == std::string::npos ? "./" + file : file);
  const auto entry = library.find<BackendEntry>("st_backend_v1");
  require(entry != nullptr, Code::unavailable, file, ": it is no backend plug-in, as it has no function st_backend_v1");
  const BackendPlugin* const plugin = ask_plugin(file, entry);
  require(plugin != nullptr, Code::unavailable, file, ": st_backend_v1 returned no table");
  require(plugin->abi == kBackendAbi, Code::unavailable, file, ": it has backend interface ", plugin->abi, " and build ",
          name_of_build(plugin->build), ", this library has interface ", kBackendAbi, " and build ", kBuildId,
          "; install the plug-in of this library");
  require(plugin->build != nullptr && std::string_view(plugin->build) == kBuildId, Code::unavailable, file, ": it is of build ",
          name_of_build(plugin->build), ", this library of build ", kBuildId, "; install the plug-in of this library");
  require(plugin->devices != nullptr && plugin->count >= 1 && plugin->count <= kMostDevices, Code::unavailable, file,
          ": its table of devices ",
          plugin->devices == nullptr ? "is null" : text("has ", plugin->count, " rows, must have 1 to ", kMostDevices));
  const std::span<const DeviceMaker> devices(plugin->devices, static_cast<size_t>(plugin->count));
  for (const DeviceMaker& maker : devices) check_device(file, maker);
  return devices;
}

std::string given_path() {
  const char* const path = std::getenv("SCALETRAIN_BACKEND_PATH");
  return path == nullptr ? "" : path;
}

/// The name of a device in that of its file, which has _ for -.
std::string stem_of(std::string_view name) {
  std::string stem(name);
  std::ranges::replace(stem, '-', '_');
  return stem;
}

std::string file_in(const std::string& folder, std::string_view name) { return text(folder, "/", kPrefix, stem_of(name), kSuffix); }

/// Where the plug-in of a device may be, in order.
std::vector<std::string> files_of(std::string_view name) {
  std::vector<std::string> files;
  if (const std::string path = given_path(); !path.empty())
    files.push_back(os::kind_of(path) == os::PathKind::folder ? file_in(path, name) : path);
  files.push_back(file_in(os::folder_of_this_library(), name));
  return files;
}

struct Found {
  const DeviceMaker* maker = nullptr;
  std::string file;                 // of the plug-in
  std::string looked;               // else: where it was looked for
  std::vector<std::string> others;  // devices that were seen meanwhile
};

Found find_plugin(std::string_view name) {
  Found found;
  for (const std::string& file : files_of(name)) {
    if (os::kind_of(file) == os::PathKind::none) {
      found.looked += text(found.looked.empty() ? "" : ", and ", "there is no ", file);
      continue;
    }
    const auto devices = devices_in(file);
    if ((found.maker = find_in(devices, name)) != nullptr) {
      found.file = file;
      return found;
    }
    for (const DeviceMaker& other : devices) found.others.emplace_back(other.name);
    found.looked += text(found.looked.empty() ? "" : ", and ", file, " has no device ", name);
  }
  return found;
}

bool has_plugin(std::string_view name) { return std::ranges::find(kInPlugins, name) != kInPlugins.end(); }

constexpr std::string_view kWayOut = "; install it there, or set SCALETRAIN_BACKEND_PATH to it or to its folder";

/// Where SCALETRAIN_BACKEND_PATH is set, a device that is unknown may be one of another path.
std::string other_path(const Found& found) {
  const std::string path = given_path();
  if (path.empty() || found.looked.empty()) return "";
  return text("; SCALETRAIN_BACKEND_PATH is \"", path, "\": ", found.looked, "; set it to the plug-in or to its folder",
              path.starts_with('/') ? "" : "; a relative path begins in the working folder");
}

/// found: what was seen where a plug-in of this name was looked for.
[[noreturn]] void fail_unknown(const std::string& device, const Found& found) {
  std::vector<std::string> known;
  for (const DeviceMaker& maker : kBuiltIn) known.emplace_back(maker.name);
  known.insert(known.end(), kInPlugins.begin(), kInPlugins.end());
  for (const std::string& other : found.others)
    if (std::ranges::find(known, other) == known.end()) known.push_back(other);
  const std::string all = listed(known);  // as a sentence has it: the last one after "or"
  const size_t comma = all.rfind(", ");
  fail(Code::invalid_argument,
       text("context: unknown device \"", device, "\"; use ", all.substr(0, comma), " or ", all.substr(comma + 2), other_path(found)));
}

struct Chosen {
  const DeviceMaker* maker = nullptr;
  std::string file;  // of the plug-in; empty: built in
};

Chosen chosen(const std::string& device, std::string_view name) {
  if (const DeviceMaker* const maker = find_in(kBuiltIn, name)) return {maker, ""};
  if (!is_name(name)) fail_unknown(device, {});
  Found found = find_plugin(name);
  if (found.maker != nullptr) return {found.maker, std::move(found.file)};
  if (!has_plugin(name)) fail_unknown(device, found);
  fail(Code::unavailable, text("context: the plug-in of device ", name, " is not installed: ", found.looked, kWayOut));
}

int count_of(const DeviceMaker& maker, const std::string& file, std::string& why_none) {
  const int count = ask_plugin(file, [&] { return maker.count(why_none); });
  if (count <= 0 && why_none.empty()) why_none = "it gives no reason";
  std::ranges::replace(why_none, '\n', ' ');
  return std::max(count, 0);
}

ListedDevice listed_row(const DeviceMaker& maker, const std::string& file) {
  ListedDevice row{.name = maker.name, .count = 0, .why_none = ""};
  try {
    row.count = count_of(maker, file, row.why_none);
  } catch (const Error& why) {
    row.why_none = why.message();
  }
  if (maker.network == nullptr) return row;
  row.network = maker.network;
  try {
    row.network_version = ask_plugin(file, maker.network_version);
  } catch (const Error& why) {
    row.why_no_network = why.message();
  }
  return row;
}

void add_once(std::vector<ListedDevice>& rows, ListedDevice row) {
  if (std::ranges::none_of(rows, [&](const ListedDevice& other) { return other.name == row.name; })) rows.push_back(std::move(row));
}

/// "apart" of DIR/libscaletrain_apart.so; the whole name of another file.
std::string name_in(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1);
  const bool is_ours = name.starts_with(kPrefix) && name.ends_with(kSuffix) && name.size() > kPrefix.size() + kSuffix.size();
  return is_ours ? name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()) : name;
}

/// Calls list(); what it throws is the reason why there is no device `name`.
template <class List>
void list_or_say_why(std::vector<ListedDevice>& rows, const std::string& name, const List& list) {
  try {
    list();
  } catch (const Error& why) {
    add_once(rows, {.name = name, .count = 0, .why_none = why.message()});
  }
}

/// In a folder the plug-in of a device is found by the device's name.
void list_named(const std::string& file, std::vector<ListedDevice>& rows) {
  const std::string name = name_in(file);
  list_or_say_why(rows, name, [&] {
    require(os::kind_of(file) != os::PathKind::none, Code::unavailable, "there is no ", file);
    const auto devices = devices_in(file);
    const auto found = std::ranges::find_if(devices, [&](const DeviceMaker& maker) { return stem_of(maker.name) == name; });
    require(found != devices.end(), Code::unavailable, file, " has no device ", name);
    add_once(rows, listed_row(*found, file));
  });
}

/// The plug-ins at SCALETRAIN_BACKEND_PATH.
void list_given(const std::string& path, std::vector<ListedDevice>& rows) {
  if (os::kind_of(path) != os::PathKind::folder) {
    for (const DeviceMaker& maker : devices_in(path)) add_once(rows, listed_row(maker, path));
    return;
  }
  const auto files = os::files_below(
      path, [](std::string_view name, bool is_folder) { return !is_folder && name.starts_with(kPrefix) && name.ends_with(kSuffix); });
  for (const std::string& file : files) list_named(text(path, "/", file), rows);
}

}  // namespace

bool is_device_name(std::string_view device) {
  const size_t colon = device.find(':');
  if (colon == std::string_view::npos) return is_name(device);
  const std::string_view index = device.substr(colon + 1);
  return is_name(device.substr(0, colon)) && !index.empty() && index.size() <= kLongestIndex &&
         std::ranges::all_of(index, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<ListedDevice> listed_devices() {
  std::vector<ListedDevice> rows;
  for (const DeviceMaker& maker : kBuiltIn) rows.push_back(listed_row(maker, ""));
  if (const std::string path = given_path(); !path.empty())
    list_or_say_why(rows, name_in(path), [&] {
      if (os::kind_of(path) != os::PathKind::none) list_given(path, rows);
    });
  for (const std::string_view name : kInPlugins)
    list_or_say_why(rows, std::string(name), [&] {
      const Found found = find_plugin(name);
      require(found.maker != nullptr, Code::unavailable, found.looked, kWayOut);
      add_once(rows, listed_row(*found.maker, found.file));
    });
  return rows;
}

std::unique_ptr<Backend> open_device(const std::string& device, std::shared_ptr<MemorySource> memory) {
  const std::string name = device.substr(0, device.find(':'));
  const auto [maker, file] = chosen(device, name);
  std::string why_none;
  const int count = count_of(*maker, file, why_none);
  const std::string all = count <= 1 ? name + ":0" : text(name, ":0 to ", name, ":", count - 1);
  if (!is_device_name(device))
    fail(Code::invalid_argument, text("context: device must be ", name, " or ", name, ":INDEX, where INDEX is ", kDeviceIndices, ", got \"",
                                      device, "\"", count > 0 ? text("; this machine has ", all) : ""));
  int index = 0;
  if (name.size() < device.size()) std::from_chars(device.data() + name.size() + 1, device.data() + device.size(), index);
  require(count > 0, Code::unavailable, "context: this machine has no device ", name, ": ", why_none);
  check(index < count, "context: device must be ", all, ", got \"", device, "\"");
  auto backend = ask_plugin(file, [&, made = maker] { return made->open(index, std::move(memory)); });
  require(backend != nullptr && backend->name() == maker->name, Code::unavailable, "context: device ", device, ": ", file, " opened ",
          backend == nullptr ? "none" : backend->name());
  if (!file.empty()) remember(*maker);
  return backend;
}

const DeviceNeeds* needs_of_plugin(std::string_view name) {
  for (const auto& place : opened) {
    const DeviceMaker* const maker = place.load();
    if (maker == nullptr) return nullptr;
    if (maker->name == name) return maker->needs;
  }
  return nullptr;
}

}  // namespace st

// A shared library that brings devices. Its one C function gives a table; C++ objects of the same build are behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/needs.h"
#include "base/error.h"

namespace st {

/// A kind of device. Only `needs` may be null.
struct DeviceMaker {
  const char* name;  // "cuda": 1 to 32 of a-z, 0-9, _ and -
  /// The number of devices of this machine. `why_none` gets one line: why there is none, or what those that there are go without.
  int (*count)(std::string& why_none);
  /// Device `index` of count(), with its buffers counted by `memory`; null: by the backend.
  std::unique_ptr<Backend> (*open)(int index, std::shared_ptr<MemorySource> memory);
  const DeviceNeeds* needs;  // of its kernels; null: the library knows them (cuda)
  /// The network between such devices of several ranks ("nccl"), for lists, and which version is found; throws unavailable with the reason
  /// where none is. Null: there is no kind of it.
  const char* network = nullptr;
  std::string (*network_version)() = nullptr;
};

constexpr uint32_t kBackendAbi = 1;

/// Digest of all declarations that library and plug-ins share, and of the compiler and its options (build_id.cmake). Objects of another
/// build have another layout.
extern const char* const kBuildId;

/// Static; never freed. `abi` and `build` are the first fields in every version.
struct BackendPlugin {
  uint32_t abi;       // kBackendAbi
  const char* build;  // kBuildId
  const DeviceMaker* devices;
  int32_t count;  // of `devices`
};

/// The type of st_backend_v1, which a plug-in exports.
using BackendEntry = const BackendPlugin* (*)();

}  // namespace st

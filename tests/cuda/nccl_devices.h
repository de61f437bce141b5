// Shared by tests of ranks that are threads with a simulated device each, connected by the NCCL of fake_nccl.cpp.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "backend/device_registry.h"
#include "base/text.h"
#include "comm/direct_exchange.h"
#include "exec/device_connection.h"

namespace st {

constexpr int kMostRanks = 8;

/// A device for each rank.
inline const std::vector<std::unique_ptr<Backend>>& devices() {
  static const auto& all = *new std::vector<std::unique_ptr<Backend>>([] {
    std::vector<std::unique_ptr<Backend>> made;
    for (int rank = 0; rank < kMostRanks; ++rank) made.push_back(open_device(text("cuda-simulated:", rank), nullptr));
    return made;
  }());
  return all;
}

inline Backend& device_of(int rank) { return *devices()[static_cast<size_t>(rank)]; }

inline void connect(DirectExchange& group, Backend& backend) {
  connect_devices(group, *backend.open_network(), std::make_shared<DeviceTurn>());
}

/// ST_FAKE_NCCL for its lifetime.
class Fault {
 public:
  explicit Fault(const char* what) { setenv("ST_FAKE_NCCL", what, 1); }
  ~Fault() { unsetenv("ST_FAKE_NCCL"); }
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
};

/// Folders of communicators that have not ended.
inline std::vector<std::filesystem::path> folders_left_over() {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().starts_with(text("st_fake_nccl_", getpid(), "_"))) folders.push_back(entry.path());
  return folders;
}
inline int left_over() { return static_cast<int>(folders_left_over().size()); }
/// Those of communicators that some rank never had.
inline void remove_left_over() {
  for (const auto& folder : folders_left_over()) std::filesystem::remove_all(folder);
}

}  // namespace st

// libscaletrain_cuda.so: NVIDIA GPUs, so far only as far as finding them.
#include "backend/backend_plugin.h"
#include "backend/cuda/device_profile.h"
#include "backend/cuda/driver.h"
#include "base/text.h"

namespace st::cuda {
namespace {

/// Why `device`, which this machine has, cannot train.
std::string why_unused(const DeviceProfile& device, const Driver& driver) {
  check_usable(device);
  return text("there is ", device.text(), " with a driver of CUDA ", cuda_version_text(driver.version),
              ", but this version does not train on it yet; use device cpu");
}

int count(std::string& why_none) {
  try {
    const Driver driver = load_driver();
    const std::vector<DeviceProfile> devices = device_profiles(driver);
    why_none = devices.empty() ? "the driver lists no device" : why_unused(devices.front(), driver);
  } catch (const Error& why) {
    why_none = why.message();
  }
  return 0;
}

/// Is not called while count() is 0.
std::unique_ptr<Backend> open(int /*index*/, std::shared_ptr<MemorySource> memory) {
  memory.reset();
  std::string why;
  count(why);
  fail(Code::unavailable, why);
}

constexpr DeviceMaker kDevices[] = {{"cuda", count, open, nullptr}};

}  // namespace
}  // namespace st::cuda

extern "C" __attribute__((visibility("default"))) const st::BackendPlugin* st_backend_v1() {
  using namespace st;
  static const BackendPlugin plugin = {kBackendAbi, kBuildId, cuda::kDevices, std::size(cuda::kDevices)};
  return &plugin;
}

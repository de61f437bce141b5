// libscaletrain_cuda.so: NVIDIA GPUs.
#include <string>
#include <utility>
#include <vector>

#include "backend/backend_plugin.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/device_profile.h"
#include "backend/cuda/driver.h"
#include "base/text.h"

namespace st::cuda {
namespace {

/// Devices are numbered as the driver does; all of them can be used.
int count(std::string& why_none) {
  try {
    const std::vector<DeviceProfile> devices = device_profiles(load_driver());
    for (const DeviceProfile& device : devices) check_usable(device);
    if (devices.empty()) why_none = "the driver lists no device";
    return static_cast<int>(devices.size());
  } catch (const Error& why) {
    why_none = why.message();
    return 0;
  }
}

/// Code of sm_80, sm_90a, sm_100 and sm_120 runs on devices of the same major version, sm_90a on 9.0 alone; for others the driver compiles
/// it.
bool is_compiled_for(const DeviceProfile& device) {
  return device.major == 8 || (device.major == 9 && device.minor == 0) || device.major == 10 || device.major == 12;
}

/// All that bits depend on: the device, this build and the libraries.
std::string kernel_class_of(const DeviceProfile& device, const Driver& driver) {
  return text("cuda ", device.compute_class(), "/", device.units, " own=", kBuildId,
              " cublasLt=none cudnn=none fp32=ieee table=none jit=", is_compiled_for(device) ? "none" : cuda_version_text(driver.version));
}

std::unique_ptr<Backend> open(int index, std::shared_ptr<MemorySource> memory) {
  const Driver driver = load_driver();
  const std::vector<DeviceProfile> devices = device_profiles(driver);
  return make_cuda_backend("cuda", kernel_class_of(devices.at(static_cast<size_t>(index)), driver), index, std::move(memory));
}

constexpr DeviceMaker kDevices[] = {{"cuda", count, open, nullptr}};

}  // namespace
}  // namespace st::cuda

extern "C" __attribute__((visibility("default"))) const st::BackendPlugin* st_backend_v1() {
  using namespace st;
  static const BackendPlugin plugin = {kBackendAbi, kBuildId, cuda::kDevices, std::size(cuda::kDevices)};
  return &plugin;
}

// libscaletrain_cuda.so: NVIDIA GPUs.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend_plugin.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/device_profile.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/library_products.h"
#include "base/text.h"

namespace st::cuda {
namespace {

bool is_usable(const DeviceProfile& device) {
  try {
    check_usable(device);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Devices are numbered as the driver does. One that cannot be used is refused when it is opened, if there is another that can. A missing
/// library is said, and no reason for fewer.
int count(std::string& why_none) {
  try {
    const std::vector<DeviceProfile> devices = device_profiles(load_driver());
    if (devices.empty()) why_none = "the driver lists no device";
    if (std::ranges::none_of(devices, is_usable) && !devices.empty()) check_usable(devices.front());
    if (!devices.empty()) cublaslt_if_there(load_cublaslt, why_none);
    return static_cast<int>(devices.size());
  } catch (const Error& why) {
    why_none = why.message();
    return 0;
  }
}

std::string device_class(const DeviceProfile& device) { return text(device.compute_class(), "/", device.units); }

/// Code of sm_80 runs on devices of its major version, of sm_90a on 9.0 alone, of sm_100 and sm_120, where the build has them, as sm_80's;
/// for others the driver compiles it.
bool is_compiled_for(const DeviceProfile& device) {
  return device.major == 8 || (device.major == 9 && device.minor == 0) ||
         (ST_CUDA_LATER_DEVICES != 0 && (device.major == 10 || device.major == 12));
}

/// All that bits depend on: the device, this build and the libraries.
std::string kernel_class_of(const DeviceProfile& device, const Driver& driver, const ProductMeans& products) {
  return text("cuda ", device_class(device), " own=", kBuildId, " ", products.kernel_class(),
              " cudnn=none fp32=ieee jit=", is_compiled_for(device) ? "none" : cuda_version_text(driver.version));
}

std::unique_ptr<Backend> open(int index, std::shared_ptr<MemorySource> memory) {
  const Driver driver = load_driver();
  const DeviceProfile device = device_profiles(driver).at(static_cast<size_t>(index));
  check_usable(device);
  std::string why_no_library;
  const ProductMeans products(device_class(device), cublaslt_if_there(load_cublaslt, why_no_library));
  return make_cuda_backend("cuda", kernel_class_of(device, driver, products), index, std::move(memory), open_nccl,
                           [&] { return products.choices(); });
}

std::string nccl_version() { return open_nccl()->version_text(); }

constexpr DeviceMaker kDevices[] = {{"cuda", count, open, nullptr, "nccl", nccl_version}};

}  // namespace
}  // namespace st::cuda

extern "C" __attribute__((visibility("default"))) const st::BackendPlugin* st_backend_v1() {
  using namespace st;
  static const BackendPlugin plugin = {kBackendAbi, kBuildId, cuda::kDevices, std::size(cuda::kDevices)};
  return &plugin;
}

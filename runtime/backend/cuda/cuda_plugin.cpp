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

std::string code_of(const DeviceProfile& device) { return device.code_class(ST_CUDA_LATER_DEVICES != 0); }

void check_opens(const Driver& driver, const DeviceProfile& device) {
  check_usable(device);
  check_compiles(code_of(device), driver.version);
}

bool opens(const Driver& driver, const DeviceProfile& device) {
  try {
    check_opens(driver, device);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Devices are numbered as the driver does. One that cannot be used is refused when it is opened, if there is another that can. A missing
/// library is said, and no reason for fewer.
int count(std::string& why_none) {
  try {
    const Driver driver = load_driver();
    const std::vector<DeviceProfile> devices = device_profiles(driver);
    if (devices.empty()) why_none = "the driver lists no device";
    if (std::ranges::none_of(devices, [&](const auto& device) { return opens(driver, device); }) && !devices.empty())
      check_opens(driver, devices.front());
    if (!devices.empty()) cublaslt_if_there(load_cublaslt, why_none);
    return static_cast<int>(devices.size());
  } catch (const Error& why) {
    why_none = why.message();
    return 0;
  }
}

std::unique_ptr<Backend> open(int index, std::shared_ptr<MemorySource> memory) {
  const Driver driver = load_driver();
  const DeviceProfile device = device_profiles(driver).at(static_cast<size_t>(index));
  check_opens(driver, device);
  std::string why_no_library;
  const std::string code = code_of(device);
  const ProductMeans products(code, cublaslt_if_there(load_cublaslt, why_no_library));
  return make_cuda_backend("cuda", kernel_class_of(code, kBuildId, driver, products), std::make_shared<DeviceContext>(driver, index),
                           std::move(memory), open_nccl, [&] { return products.choices(); });
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

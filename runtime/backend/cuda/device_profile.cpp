#include "backend/cuda/device_profile.h"

#include <array>

#include "base/error.h"
#include "base/text.h"

namespace st::cuda {
namespace {

constexpr int64_t kReserved = int64_t{1} << 30;  // context, modules and libraries' buffers: 0.55 GB for a context on an H100 (tests/gpu)

class Asked {
 public:
  Asked(const Driver& driver, int index) : driver_(driver) { driver.must(driver.cuDeviceGet(&device_, index), "cuDeviceGet"); }

  int attribute(CUdevice_attribute which) const {
    int value = 0;
    driver_.must(driver_.cuDeviceGetAttribute(&value, which, device_), "cuDeviceGetAttribute");
    return value;
  }
  std::string name() const {
    std::array<char, 256> name{};
    driver_.must(driver_.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device_), "cuDeviceGetName");
    return name.data();
  }
  int64_t memory() const {
    size_t bytes = 0;
    driver_.must(driver_.cuDeviceTotalMem(&bytes, device_), "cuDeviceTotalMem");
    return static_cast<int64_t>(bytes);
  }

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
};

DeviceProfile profile_of(const Asked& asked) {
  DeviceProfile profile;
  profile.name = asked.name();
  profile.major = asked.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  profile.minor = asked.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  profile.units = asked.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  profile.registers = asked.attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  profile.unit_shared = asked.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  profile.block_shared = asked.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  profile.memory = asked.memory();
  profile.l2 = asked.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  // Two transfers a clock, in kHz, of a bus whose width is in bits.
  profile.bytes_per_second = int64_t{2} * asked.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) * 1000 *
                             asked.attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
  const int mode = asked.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  profile.is_prohibited = mode == CU_COMPUTEMODE_PROHIBITED;
  profile.is_exclusive = mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
  return profile;
}

int capability_of(const DeviceProfile& device) { return device.major * 10 + device.minor; }

}  // namespace

std::string DeviceProfile::compute_class() const { return st::text("sm_", major, minor); }

std::string DeviceProfile::code_class(bool has_later_code) const {
  std::string_view code = "compute_80";
  if (major == 8) code = "sm_80";
  if (major == 9 && minor == 0) code = "sm_90a";
  if (has_later_code && major == 10) code = "sm_100";
  if (has_later_code && major == 12) code = "sm_120";
  const std::string own = compute_class();
  return st::text(code, code.starts_with(own) ? "" : ":" + own, "/", units);
}

std::string DeviceProfile::text() const { return st::text(name, " (", compute_class(), ", ", units, " SMs, ", text_of_bytes(memory), ")"); }

MachineProfile DeviceProfile::machine() const {
  std::string_view nearest;  // the newest class that is not newer than the device
  for (const std::string_view known : kCudaClasses)
    if (whole_number(known.substr(known.find('_') + 1), 0) <= capability_of(*this)) nearest = known;
  require(capability_of(*this) >= kOldest, Code::unsupported, "cuda: no kernels for ", text());
  return {.device = "cuda", .kernel_class = std::string(nearest), .memory = memory, .reserved = kReserved};
}

std::vector<DeviceProfile> device_profiles(const Driver& driver) {
  int count = 0;
  driver.must(driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
  std::vector<DeviceProfile> profiles;
  for (int index = 0; index < count; ++index) profiles.push_back(profile_of(Asked(driver, index)));
  return profiles;
}

void check_usable(const DeviceProfile& device) {
  require(capability_of(device) >= DeviceProfile::kOldest, Code::unavailable, device.text(), " is too old: kernels need sm_",
          DeviceProfile::kOldest, " (A100) or later");
  require(!device.is_prohibited, Code::unavailable, device.text(),
          " is in compute mode Prohibited; an administrator can allow it with nvidia-smi -c DEFAULT");
}

void check_compiles(std::string_view code, int driver, int toolkit) {
  require(!code.starts_with("compute_") || driver >= toolkit, Code::unavailable, "this plug-in has no machine code for the device (", code,
          "), and the driver, of CUDA ", cuda_version_text(driver), ", cannot compile what the toolkit ", cuda_version_text(toolkit),
          " has made; update the driver, or build the plug-in by the toolkit ", cuda_version_text(driver));
}

}  // namespace st::cuda

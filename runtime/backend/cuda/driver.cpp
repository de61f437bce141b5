#include "backend/cuda/driver.h"

#include <cstdlib>

#include "backend/cuda/vendor_library.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/text.h"

namespace st::cuda {
namespace {

constexpr std::string_view kRemedy = "install NVIDIA's driver, r580 or later";
constexpr VendorLibrary kDriver = {"NVIDIA's driver", "libcuda.so", 1, false, kRemedy};

/// A driver runs programs of its own major version and of older ones. Code of this toolkit needs its first release.
constexpr int kNeeded = CUDA_VERSION / 1000 * 1000;

std::string why_no_device() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return "the driver has no device; see what nvidia-smi -L lists";
  return text("the driver has no device that CUDA_VISIBLE_DEVICES=\"", visible, "\" lets this process see; unset it, or name one of ",
              "those that nvidia-smi -L lists");
}

std::string_view way_out(CUresult result) {
  switch (result) {
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "the driver's kernel module and library differ, as after an update: restart the machine, or load the module again";
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return "the service of the machine's NVSwitches does not run: systemctl start nvidia-fabricmanager, of the driver's version";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return "this device cannot use the library of the package cuda-compat: take its folder out of LD_LIBRARY_PATH, or update the driver";
    default:
      return "see whether nvidia-smi works on this machine, and in this container";
  }
}

}  // namespace

void Driver::must(CUresult result, const char* called) const {
  if (result == CUDA_SUCCESS) return;
  const char *name = nullptr, *words = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &words);
  fail(Code::unavailable, text(called, " returned ", static_cast<int>(result), " (", name == nullptr ? "unknown" : name,
                               words == nullptr ? "" : text(": ", words), "); ", way_out(result)));
}

std::string cuda_version_text(int version) { return text(version / 1000, ".", version % 1000 / 10); }

Driver load_driver() {
  const HostsFloatMode mode;  // for threads that it starts
  const os::LoadedLibrary library = open_vendor_library(kDriver);
  const auto fill = [&](auto& function, const char* name) { library.fill(function, name, "driver that this plug-in knows", kRemedy); };
  Driver driver;
  decltype(&::cuDriverGetVersion) version_of = nullptr;
  fill(version_of, "cuDriverGetVersion");
  const CUresult told = version_of(&driver.version);
  require(told == CUDA_SUCCESS, Code::unavailable, "cuDriverGetVersion returned ", static_cast<int>(told),
          "; see whether nvidia-smi works, and else ", kRemedy);
  require(driver.version >= kNeeded, Code::unavailable, "the driver (", library.name(), ") is too old: it is of CUDA ",
          cuda_version_text(driver.version), ", this plug-in needs ", cuda_version_text(kNeeded), "; ", kRemedy);
#define ST_FILL(function) fill(driver.function, ST_CUDA_NAME(function));
  ST_DRIVER_FUNCTIONS(ST_FILL)
#undef ST_FILL
  const CUresult begun = driver.cuInit(0);
  require(begun != CUDA_ERROR_NO_DEVICE, Code::unavailable, why_no_device());
  require(begun != CUDA_ERROR_STUB_LIBRARY, Code::unavailable, library.name(),
          " is the toolkit's stub for linking, not a driver; take its folder out of SCALETRAIN_CUDA_PATH and LD_LIBRARY_PATH");
  driver.must(begun, "cuInit");
  return driver;
}

}  // namespace st::cuda

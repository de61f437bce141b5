// A device as its driver describes it; kernels, their grids and plans for the device are chosen by this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/driver.h"
#include "base/machine_profile.h"

namespace st::cuda {

struct DeviceProfile {
  std::string name;              // "NVIDIA H100 80GB HBM3"; a MIG slice: that of the slice
  int major = 0, minor = 0;      // compute capability
  int units = 0;                 // streaming multiprocessors
  int registers = 0;             // of a unit, 32 bits each
  int64_t unit_shared = 0;       // bytes of shared memory of a unit
  int64_t block_shared = 0;      // the most of it that a block may ask for
  int64_t memory = 0, l2 = 0;    // bytes
  int64_t bytes_per_second = 0;  // of its memory, from clock and width; 0: the driver does not say
  bool is_prohibited = false;    // its compute mode lets no process use it
  bool is_exclusive = false;     // its compute mode lets one process use it

  /// "sm_90".
  std::string compute_class() const;
  /// The name of the machine code that runs on it, with its units: "sm_90a/132"; "sm_80:sm_89/142" where that is another device's, and
  /// "compute_80:sm_103/148" where its driver compiles the PTX. `has_later_code`: the build has that of sm_100 and sm_120.
  std::string code_class(bool has_later_code) const;
  /// One line: "NVIDIA H100 80GB HBM3 (sm_90, 132 SMs, 79.1 GiB)".
  std::string text() const;
  /// For plans. Throws unsupported for a capability below kOldest.
  MachineProfile machine() const;

  static constexpr int kOldest = 80;  // compute capability 8.0: bf16, and copies to shared memory that do not wait
};

/// Those of the devices that this process may see, in the driver's order.
std::vector<DeviceProfile> device_profiles(const Driver& driver);

/// Throws unavailable, with the device's name and the way out, if kernels cannot run on it: too old, or prohibited.
void check_usable(const DeviceProfile& device);

/// Throws unavailable if the driver of CUDA `driver` (13010: 13.1) is to compile PTX of a newer toolkit. `code`:
/// DeviceProfile::code_class().
void check_compiles(std::string_view code, int driver, int toolkit = CUDA_VERSION);

}  // namespace st::cuda

// How this CPU multiplies bf16 by bf16 fastest, from a table of CPU identities: rates were measured beforehand, nothing is timed.
#pragma once

#include "base/os/cpu.h"

namespace st {

enum class Bf16Product : int32_t {
  widened,  // to floats while packing, and then as those
  pairs,    // vdpbf16ps
  tiles,    // AMX
};

/// The fastest of what the CPU has; what is not in the table is widened.
Bf16Product fastest_bf16_product(const os::CpuIdentity& cpu);

}  // namespace st

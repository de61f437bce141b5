// The fastest way for this CPU to multiply bf16 by bf16, from a table of CPU identities measured beforehand; nothing is timed.
#pragma once

#include "base/os/cpu.h"

namespace st {

enum class Bf16Product : int32_t {
  widened,  // widened to floats while packing
  pairs,    // vdpbf16ps
  tiles,    // AMX
};

/// The fastest that the CPU supports; `widened` if it is not in the table.
Bf16Product fastest_bf16_product(const os::CpuIdentity& cpu);

}  // namespace st

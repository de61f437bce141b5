// What this machine's cores can do right now with operands of bf16: the other limits of a product whose operands are 16 bits wide.
#pragma once

#include <vector>

#include "core_peak.h"

namespace cli {

/// "vdpbf16ps" and "amx", those that this processor has and the system lets us use; else none.
std::vector<PeakLoop> bf16_loops();

}  // namespace cli

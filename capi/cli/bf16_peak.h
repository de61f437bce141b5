// The peak bf16 throughput of this machine's cores, measured now: further limits for products with 16-bit operands.
#pragma once

#include <vector>

#include "core_peak.h"

namespace cli {

/// "vdpbf16ps" and "amx", as far as the processor has them and the system enables them; may be empty.
std::vector<PeakLoop> bf16_loops();

}  // namespace cli

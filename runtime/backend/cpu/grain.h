// How elementwise work is cut into tasks: the same for every instruction set and for code compiled once for all of them.
#pragma once

#include <cstdint>

namespace st::cpu {

constexpr int64_t kGrain = 16384;  // elements per task of an elementwise kernel: about 10 us; three arrays of it fit in L2

}  // namespace st::cpu

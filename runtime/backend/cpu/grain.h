// How elementwise work is cut into tasks: alike for every instruction set, and for what is compiled once for all of them.
#pragma once

#include <cstdint>

namespace st::cpu {

constexpr int64_t kGrain = 16384;  // elements of one task of an elementwise kernel: about 10 us, and three arrays of it fit in L2

}  // namespace st::cpu

// The processor: which it is, and what it can do.
#pragma once

#include <cstdint>
#include <string>

namespace st::os {

struct CpuIdentity {
  std::string vendor;  // "AuthenticAMD"
  std::string brand;   // "AMD EPYC ..."
  int family = 0, model = 0;
  bool avx2_fma = false, avx512 = false /* F, BW, DQ, VL */, avx512_bf16 = false, amx_bf16 = false;
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // data caches as the OS reports them; 0: unknown
};
const CpuIdentity& cpu();
/// Asks the system to let this process use the CPU's tile registers (AMX), the first time; whether it does. Linux then refuses signal
/// stacks that are too small for them, and refuses us where a thread has one: so only who is about to use tiles asks.
bool may_use_tiles();
/// Cycles of this core a second: by the time of a chain of additions, each of which takes one. Measured once, in some 20 us.
double clock_rate();

}  // namespace st::os

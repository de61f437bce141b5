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
/// Asks the system, once, for permission to use the CPU's tile registers (AMX); returns whether this process has it. Linux then refuses
/// signal stacks too small for them, and refuses the permission where a thread already has such a stack: call it only before using tiles.
bool may_use_tiles();
/// Cycles of this core per second, measured once (about 20 us) by timing a chain of one-cycle additions.
double clock_rate();

}  // namespace st::os

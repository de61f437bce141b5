#include "backend/cpu/bf16_rate.h"

namespace st {
namespace {

constexpr bool is_within(int model, int first, int last) { return model >= first && model <= last; }

/// Zen 4 and 5: twice the rate of FMA. Intel's vdpbf16ps has half of it (Sapphire Rapids: 100 and 200 GFLOP/s per core), so widening wins.
bool has_fast_pairs(const os::CpuIdentity& cpu) {
  if (cpu.vendor != "AuthenticAMD") return false;
  const int m = cpu.model;
  return cpu.family == 0x1a || (cpu.family == 0x19 && (is_within(m, 0x10, 0x1f) || is_within(m, 0x60, 0x7f) || is_within(m, 0xa0, 0xaf)));
}

}  // namespace

Bf16Product fastest_bf16_product(const os::CpuIdentity& cpu) {
  if (cpu.amx_bf16) return Bf16Product::tiles;  // 16 times the rate of FMA
  if (cpu.avx512_bf16 && has_fast_pairs(cpu)) return Bf16Product::pairs;
  return Bf16Product::widened;
}

}  // namespace st

// An instruction set counts only if the operating system saves its registers too.
#include "base/os/cpu.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/heap.h"
#include "base/os/files.h"
#include "base/os/machine.h"
#include "base/text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace st::os {
namespace {

#if defined(__x86_64__)

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

constexpr bool bit(unsigned word, int i) { return ((word >> i) & 1) != 0; }

// Inline assembly: the intrinsic requires -mxsave for the whole file.
uint64_t saved_states() {
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

void append_register(std::string& out, unsigned word) {
  std::array<char, 4> bytes;
  std::memcpy(bytes.data(), &word, sizeof word);
  for (const char c : bytes)
    if (c != '\0') out += c;
}

void name_x86(CpuIdentity& cpu) {
  const Registers zero = cpuid(0);
  for (const unsigned word : {zero.b, zero.d, zero.c}) append_register(cpu.vendor, word);
  if (cpuid(0x80000000).a >= 0x80000004)
    for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
      const Registers r = cpuid(leaf);
      for (const unsigned word : {r.a, r.b, r.c, r.d}) append_register(cpu.brand, word);
    }
  while (cpu.brand.ends_with(' ')) cpu.brand.pop_back();
  const unsigned signature = cpuid(1).a;
  const unsigned family = (signature >> 8) & 15;
  cpu.family = static_cast<int>(family == 15 ? family + ((signature >> 20) & 255) : family);
  cpu.model = static_cast<int>(((signature >> 4) & 15) + (family == 6 || family == 15 ? ((signature >> 16) & 15) << 4 : 0));
}

void read_features(CpuIdentity& cpu) {
  const Registers one = cpuid(1);
  if (!bit(one.c, 27)) return;  // OSXSAVE: without it no state beyond SSE is saved
  const uint64_t states = saved_states();
  const auto saves = [&](uint64_t mask) { return (states & mask) == mask; };
  const Registers seven = cpuid(7);
  const Registers seven_one = seven.a >= 1 ? cpuid(7, 1) : Registers{};
  const bool helpers = bit(one.c, 29) && bit(seven.b, 8);  // F16C and BMI2: the kernels of both sets are compiled with them
  cpu.avx2_fma = saves(0x6) && bit(seven.b, 5) && bit(one.c, 12) && bit(one.c, 28) && helpers;
  cpu.avx512 = cpu.avx2_fma && saves(0xE6) && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 30) && bit(seven.b, 31);
  cpu.avx512_bf16 = cpu.avx512 && bit(seven_one.a, 5);
  // Linux grants the tile registers only on request (ARCH_REQ_XCOMP_PERM): see may_use_tiles().
  cpu.amx_bf16 = cpu.avx512 && saves(0x60000) && bit(seven.d, 22) && bit(seven.d, 24);
}

#endif

/// Size of a data cache of the first core according to sysfs; 0: unknown.
int64_t sysfs_cache(int wanted) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = text("/sys/devices/system/cpu/cpu0/cache/index", i, "/");
    const std::string size = short_file(folder + "size");  // "32K"
    if (whole_number(short_file(folder + "level"), 0) != wanted || short_file(folder + "type").starts_with("Instruction")) continue;
    const int64_t number = whole_number(size, 0);
    return size.find('M') != std::string::npos ? number << 20 : size.find('K') != std::string::npos ? number << 10 : number;
  }
  return 0;
}

/// Prefers sysfs: glibc's sysconf reads cpuid, which in a virtual machine may report the host's whole L3, 320 MiB where the share is 32.
int64_t cache_bytes([[maybe_unused]] int name, int level) {
  const int64_t size = sysfs_cache(level);
  return size > 0 ? size : std::max<int64_t>(sysconf(name), 0);
}

CpuIdentity identify() {
  CpuIdentity cpu;
#if defined(__x86_64__)
  name_x86(cpu);
  read_features(cpu);
#endif
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  cpu.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 1);
  cpu.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 2);
  cpu.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 3);
#else
  cpu.l1_bytes = sysfs_cache(1);
  cpu.l2_bytes = sysfs_cache(2);
  cpu.l3_bytes = sysfs_cache(3);
#endif
  return cpu;
}

double measured_clock() {
  constexpr int kRounds = 5, kLoops = 1024, kUnrolled = 8;
  double least = 1;
  for (int round = 0; round < kRounds; ++round) {  // the fastest round was not interrupted
    uint64_t sum = 0, step = 3;
    const double begin = seconds();
    for (int i = 0; i < kLoops; ++i) {
      for (int j = 0; j < kUnrolled; ++j) {
        sum += step;
        __asm__ volatile("" : "+r"(sum), "+r"(step));  // else the compiler computes the sum at compile time
      }
    }
    least = std::min(least, seconds() - begin);
  }
  return kLoops * kUnrolled / std::max(least, 1e-9);
}

}  // namespace

bool may_use_tiles() {
#if defined(__x86_64__) && defined(__linux__) && defined(SYS_arch_prctl)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA: not in every libc's headers
  static const bool granted = cpu().amx_bf16 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

double clock_rate() {
  static const double rate = measured_clock();
  return rate;
}

const CpuIdentity& cpu() {
  static const CpuIdentity identity = once_for_the_process(identify);
  return identity;
}

}  // namespace st::os

// Runs a kernel on every instruction set of this machine: operands in host memory, a workspace of exactly the requested size, filled with
// NaN.
#pragma once

#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/gemm/entry.h"
#include "backend/cpu/table.h"
#include "backend/kernel_side.h"
#include "backend/needs.h"
#include "base/os/cpu.h"
#include "base/os/pages.h"
#include "ir/op.h"

namespace st {

struct CpuSet {
  std::string name;
  const OpTable* table;
  const GemmKernels* gemm;
};

inline std::vector<CpuSet> cpu_sets() {
  std::vector<CpuSet> sets = {{"portable", st_cpu_table_portable(), st_cpu_gemm_portable()}};
#ifdef ST_CPU_HAS_AVX2  // built, and then supported by the machine
  if (os::cpu().avx2_fma) sets.push_back({"avx2", st_cpu_table_avx2(), st_cpu_gemm_avx2()});
#endif
#ifdef ST_CPU_HAS_AVX512
  if (os::cpu().avx512) sets.push_back({"avx512", st_cpu_table_avx512(), st_cpu_gemm_avx512()});
#endif
#ifdef ST_CPU_HAS_AVX512_BF16
  if (os::cpu().avx512_bf16) sets.push_back({"avx512_bf16", st_cpu_table_avx512_bf16(), st_cpu_gemm_avx512_bf16()});
#endif
#ifdef ST_CPU_HAS_AMX_BF16
  if (os::cpu().amx_bf16 && os::cpu().avx512_bf16 && os::may_use_tiles())
    sets.push_back({"amx_bf16", st_cpu_table_amx_bf16(), st_cpu_gemm_amx_bf16()});
#endif
  return sets;
}

/// Numbers in [-1, 1), the same for the same seed.
inline std::vector<float> random_floats(int64_t n, uint64_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15 + 88172645463325252ULL;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    v = static_cast<float>(state >> 40) * 0x1p-23F - 1.0F;
  }
  return values;
}

/// 64-byte aligned bytes followed by a guard that detects writes past the end.
class GuardedScratch {
 public:
  explicit GuardedScratch(int64_t bytes) : bytes_(bytes), pages_(bytes + kGuard) {
    std::memset(pages_.data(), 0xFF, static_cast<size_t>(pages_.size()));  // NaN as fp32, bf16 and f16
  }
  std::span<std::byte> bytes() { return {pages_.data(), static_cast<size_t>(bytes_)}; }
  bool is_whole() const {
    for (int64_t i = bytes_; i < bytes_ + kGuard; ++i) {
      if (pages_.data()[i] != std::byte{0xFF}) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kGuard = 4096;
  int64_t bytes_;
  os::Pages pages_;
};

/// Runs `op`; returns false if it wrote past its workspace.
inline bool run_kernel(const CpuSet& set, Op op, const std::vector<Operand>& in, const std::vector<Operand>& out, const Attrs& attrs,
                       int threads) {
  const auto types = [](const std::vector<Operand>& operands) {
    std::vector<Type> list;
    for (const Operand& x : operands) list.push_back(Type{x.dtype, x.shape, {}});
    return list;
  };
  const Kernel& kernel = (*set.table)[static_cast<size_t>(op)];
  const Attrs full = make_attrs(op, attrs);
  Workers workers(threads);
  GuardedScratch scratch(cpu_needs.workspace({.kernel_class = set.name, .threads = threads}, op, types(in), types(out), full));
  Call call;
  call.in = in, call.out = out, call.attrs = &full, call.workspace = address_of(scratch.bytes().data()),
  call.workspace_bytes = std::ssize(scratch.bytes()), call.workers = &workers;
  kernel.run(call);
  return scratch.is_whole();
}

}  // namespace st

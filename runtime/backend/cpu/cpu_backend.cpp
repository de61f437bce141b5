// Chooses the instruction set once, by CPU identity and never by timing: the choice is the kernel class in the job hash. Sets that differ
// only in bf16 products are separate classes, since the bits of bf16 jobs depend on them.
#include <cstdlib>
#include <string>

#include "backend/cpu/bf16_rate.h"
#include "backend/cpu/gemm/entry.h"
#include "backend/cpu/table.h"
#include "backend/host_memory.h"
#include "base/error.h"
#include "base/os/cpu.h"

namespace st {
namespace {

struct BuiltSet {
  std::string_view name;
  const OpTable* (*table)();
  const GemmKernels* (*gemm)();
  bool (*runs_on)(const os::CpuIdentity& cpu);
  bool (*is_best_on)(const os::CpuIdentity& cpu) = nullptr;  // elsewhere only on request; null: wherever it runs
};

// From the widest to the one that runs everywhere.
constexpr BuiltSet kInstructionSets[] = {
#ifdef ST_CPU_HAS_AMX_BF16
    {"amx_bf16", st_cpu_table_amx_bf16, st_cpu_gemm_amx_bf16,
     [](const os::CpuIdentity& cpu) { return cpu.amx_bf16 && cpu.avx512_bf16 && os::may_use_tiles(); },
     [](const os::CpuIdentity& cpu) { return fastest_bf16_product(cpu) == Bf16Product::tiles; }},
#endif
#ifdef ST_CPU_HAS_AVX512_BF16
    {"avx512_bf16", st_cpu_table_avx512_bf16, st_cpu_gemm_avx512_bf16, [](const os::CpuIdentity& cpu) { return cpu.avx512_bf16; },
     [](const os::CpuIdentity& cpu) { return fastest_bf16_product(cpu) == Bf16Product::pairs; }},
#endif
#ifdef ST_CPU_HAS_AVX512
    {"avx512", st_cpu_table_avx512, st_cpu_gemm_avx512, [](const os::CpuIdentity& cpu) { return cpu.avx512; }},
#endif
#ifdef ST_CPU_HAS_AVX2
    {"avx2", st_cpu_table_avx2, st_cpu_gemm_avx2, [](const os::CpuIdentity& cpu) { return cpu.avx2_fma; }},
#endif
    {"portable", st_cpu_table_portable, st_cpu_gemm_portable, [](const os::CpuIdentity&) { return true; }},
};

std::string known_names() {
  std::string names;
  for (const BuiltSet& set : kInstructionSets) names += (names.empty() ? "" : ", ") + std::string(set.name);
  return names;
}

const BuiltSet& choose() {
  const os::CpuIdentity& cpu = os::cpu();
  const char* forced = std::getenv("SCALETRAIN_ISA");
  if (forced == nullptr || *forced == '\0') {
    for (const BuiltSet& set : kInstructionSets) {
      if (set.runs_on(cpu) && (set.is_best_on == nullptr || set.is_best_on(cpu))) return set;
    }
  }
  for (const BuiltSet& set : kInstructionSets) {
    if (set.name != forced) continue;
    require(set.runs_on(cpu), Code::unavailable, "cpu backend: SCALETRAIN_ISA=", set.name, " is not supported by this CPU (", cpu.brand,
            "); unset it, or choose a narrower one of ", known_names());
    return set;
  }
  fail(Code::unavailable, text("cpu backend: SCALETRAIN_ISA=", forced, " is not an instruction set of this build; it has ", known_names()));
}

class CpuBackend final : public HostBackend {
 public:
  CpuBackend(const BuiltSet& set, std::shared_ptr<MemorySource> memory) : HostBackend(std::move(memory)), set_(set) {}
  std::string_view name() const override { return "cpu"; }
  std::string_view kernel_class() const override { return set_.name; }
  const OpTable& kernels() const override { return *set_.table(); }
  const GemmKernels& gemm() const override { return *set_.gemm(); }

 private:
  const BuiltSet& set_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(std::shared_ptr<MemorySource> memory) {
  return std::make_unique<CpuBackend>(choose(), std::move(memory));
}

}  // namespace st

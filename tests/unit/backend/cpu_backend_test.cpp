// Which instruction set the cpu backend chooses, and its errors when it cannot.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/backend.h"
#include "backend/cpu/bf16_rate.h"
#include "base/os/cpu.h"
#include "cpu_kernel.h"
#include "thrown_error.h"

namespace st {
namespace {

class CpuBackendChoice : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("SCALETRAIN_ISA"); }
};

/// Ignores sets whose bf16 products another set computes faster on this CPU.
std::string best_set() {
  const Bf16Product fastest = fastest_bf16_product(os::cpu());
  std::string best;
  for (const CpuSet& set : cpu_sets()) {
    if (set.name == "avx512_bf16" && fastest != Bf16Product::pairs) continue;
    if (set.name == "amx_bf16" && fastest != Bf16Product::tiles) continue;
    best = set.name;
  }
  return best;
}

TEST_F(CpuBackendChoice, TakesTheWidestSetOfThisCpu) {
  unsetenv("SCALETRAIN_ISA");
  const auto backend = make_cpu_backend();
  EXPECT_EQ(backend->name(), "cpu");
  EXPECT_EQ(backend->kernel_class(), best_set());
}

TEST_F(CpuBackendChoice, TheEnvironmentForcesASet) {
  for (const CpuSet& set : cpu_sets()) {
    setenv("SCALETRAIN_ISA", set.name.c_str(), 1);
    const auto backend = make_cpu_backend();
    EXPECT_EQ(backend->kernel_class(), set.name);
    EXPECT_EQ(&backend->kernels(), set.table);
  }
}

TEST_F(CpuBackendChoice, MultipliesBf16AsTheTableSaysForACpu) {
  const auto fastest = [](const char* vendor, int family, int model, bool pairs, bool tiles) {
    os::CpuIdentity cpu;
    cpu.vendor = vendor, cpu.family = family, cpu.model = model;
    cpu.avx2_fma = cpu.avx512 = true, cpu.avx512_bf16 = pairs, cpu.amx_bf16 = tiles;
    return fastest_bf16_product(cpu);
  };
  EXPECT_EQ(fastest("AuthenticAMD", 0x19, 0x11, true, false), Bf16Product::pairs) << "Zen 4 server";
  EXPECT_EQ(fastest("AuthenticAMD", 0x19, 0x61, true, false), Bf16Product::pairs) << "Zen 4 desktop";
  EXPECT_EQ(fastest("AuthenticAMD", 0x19, 0xa0, true, false), Bf16Product::pairs) << "Zen 4c";
  EXPECT_EQ(fastest("AuthenticAMD", 0x1a, 0x02, true, false), Bf16Product::pairs) << "Zen 5";
  EXPECT_EQ(fastest("AuthenticAMD", 0x19, 0x11, false, false), Bf16Product::widened) << "a machine that hides the instruction";
  EXPECT_EQ(fastest("GenuineIntel", 6, 143, true, true), Bf16Product::tiles) << "Sapphire Rapids";
  EXPECT_EQ(fastest("GenuineIntel", 6, 143, true, false), Bf16Product::widened) << "the same without AMX";
  EXPECT_EQ(fastest("GenuineIntel", 6, 85, false, false), Bf16Product::widened) << "Cascade Lake";
}

TEST_F(CpuBackendChoice, AnUnknownSetIsUnavailable) {
  setenv("SCALETRAIN_ISA", "avx1024", 1);
  EXPECT_TRUE(is_error(error_of([] { make_cpu_backend(); }), Code::unavailable, {"avx1024", "portable"}));
}

TEST_F(CpuBackendChoice, EveryOpButViewsAndExchangeHasAKernel) {
  for (const CpuSet& set : cpu_sets()) {
    for (int32_t op = 0; op < kOps; ++op) {
      const OpInfo& info = info_of(static_cast<Op>(op));
      EXPECT_EQ((*set.table)[static_cast<size_t>(op)].run == nullptr, info.view || info.exchange)
          << set.name << ": " << name_of(static_cast<Op>(op));
    }
  }
}

}  // namespace
}  // namespace st

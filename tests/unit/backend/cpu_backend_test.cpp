// Which instruction set the cpu backend takes, and what it says when it cannot.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/backend.h"
#include "base/error.h"
#include "cpu_kernel.h"

namespace st {
namespace {

class CpuBackendChoice : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("SCALETRAIN_ISA"); }
};

TEST_F(CpuBackendChoice, TakesTheWidestSetOfThisCpu) {
  unsetenv("SCALETRAIN_ISA");
  const auto backend = make_cpu_backend();
  EXPECT_EQ(backend->name(), "cpu");
  EXPECT_EQ(backend->kernel_class(), cpu_sets().back().name);
}

TEST_F(CpuBackendChoice, TheEnvironmentForcesASet) {
  for (const CpuSet& set : cpu_sets()) {
    setenv("SCALETRAIN_ISA", set.name.c_str(), 1);
    const auto backend = make_cpu_backend();
    EXPECT_EQ(backend->kernel_class(), set.name);
    EXPECT_EQ(&backend->kernels(), set.table);
  }
}

TEST_F(CpuBackendChoice, AnUnknownSetIsUnavailable) {
  setenv("SCALETRAIN_ISA", "avx1024", 1);
  try {
    make_cpu_backend();
    FAIL() << "avx1024 was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::unavailable);
    EXPECT_NE(e.message().find("avx1024"), std::string::npos);
    EXPECT_NE(e.message().find("portable"), std::string::npos) << "the error must name what there is: " << e.message();
  }
}

TEST_F(CpuBackendChoice, EveryOpButTheViewsHasAKernel) {
  for (const CpuSet& set : cpu_sets()) {
    for (int32_t op = 0; op < kOps; ++op) {
      const bool view = static_cast<Op>(op) == Op::load || static_cast<Op>(op) == Op::reshape;
      EXPECT_EQ((*set.table)[static_cast<size_t>(op)].run == nullptr, view) << set.name << ": " << name_of(static_cast<Op>(op));
    }
  }
}

}  // namespace
}  // namespace st

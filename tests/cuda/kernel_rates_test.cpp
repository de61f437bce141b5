// The measurements of tests/gpu/run that nothing else runs without a GPU: their calls are ones that the kernels take.
#include "../gpu/kernel_rates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulated_runtime.h"

namespace st {
namespace {

TEST(KernelRates, AreMeasuredWithoutAFault) {
  simulated::start_runtime({.order = Order::eager, .memory = 64 << 20});
  testing::internal::CaptureStdout();
  print_kernel_rates(0, std::make_shared<MemorySource>(), 1 << 16);
  const std::string lines = testing::internal::GetCapturedStdout();
  EXPECT_EQ(lines.find("error"), std::string::npos) << lines;
  for (const char* what : {"fold 8 of bf16", "product of 64, bf16", "adamw 124M: unscale, norm, clip, step",
                           "layer norm backward, 4 x 768, bf16", "attention backward 1 x 25 x 16 x 64"})
    EXPECT_NE(lines.find(what), std::string::npos) << what;
  EXPECT_EQ(simulated::live_objects(), 0);
}

}  // namespace
}  // namespace st

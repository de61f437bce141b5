// The measurements of tests/gpu/run that nothing else runs without a GPU: their calls are ones that the kernels take.
#include "../gpu/kernel_rates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulated_driver.h"
#include "simulated_runtime.h"

namespace st {
namespace {

TEST(KernelRates, AreMeasuredWithoutAFault) {
  simulated::start_runtime({.order = Order::eager, .memory = 64 << 20});
  testing::internal::CaptureStdout();
  print_kernel_rates(simulated::held_context(0), std::make_shared<MemorySource>(), 1 << 16);
  const std::string lines = testing::internal::GetCapturedStdout();
  int64_t measured = 0;
  for (size_t at = lines.find("\"ms\":["); at != std::string::npos; at = lines.find("\"ms\":[", at + 1)) ++measured;
  EXPECT_GT(measured, 20);
  EXPECT_EQ(std::ranges::count(lines, '\n'), measured) << lines;
  for (const char* what : {"fold 8 of bf16", "product of 64, bf16", "adamw 124M: unscale, norm, clip, step, of 28 bytes",
                           "layer norm backward, 4 x 768, bf16", "attention backward 1 x 25 x 16 x 64"})
    EXPECT_NE(lines.find(what), std::string::npos) << what;
  EXPECT_EQ(simulated::live_objects(), 0);
}

}  // namespace
}  // namespace st

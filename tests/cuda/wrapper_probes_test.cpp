// The probes of tests/gpu/run's step `wrappers` on the simulated device: they are right, so what differs on a device is the device's.
#include "../gpu/wrapper_probes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "grid_engine.h"
#include "simulated_runtime.h"
#include "warp_product.h"

namespace st {
namespace {

/// How many elements differ, by all that have no fault.
int64_t printed_by_all() {
  int64_t different = 0;
  for (const WrapperProbe& probe : wrapper_probes()) different += probe.is_fault ? 0 : probe.print(probe);
  return different;
}

TEST(WrapperProbes, AreTheHostsOnTheSimulatedDevice) {
  for (const Order order : {Order::late, Order::random}) {
    simulated::start_runtime({.order = order, .memory = 64 << 20});
    simulated::set_seed(order == Order::late ? 2 : 1);  // even: copies and products are late too
    testing::internal::CaptureStdout();
    const int64_t different = printed_by_all();
    const std::string lines = testing::internal::GetCapturedStdout();
    EXPECT_EQ(different, 0) << lines << simulated::kernel_failure();
    for (const char* what : {"shuffle_xor", "fence_device, 64 blocks", "load_matrices", "multiply_add of f16", "copy_async in stages",
                             "copy_bulk", "multiply_tiles of copy_tile", "multiply_tiles of stores", "a graph of 2 kernels, three times",
                             "a graph of a kernel that was not loaded, twice"})
      EXPECT_NE(lines.find(std::string("{\"probe\":\"") + what), std::string::npos) << what;
    EXPECT_EQ(simulated::live_objects(), 0);
  }
  simulated::set_seed(1);
}

/// The lanes' fragments come to the model as the host gives them to it.
TEST(WrapperProbes, HaveTheModelsBitsIfSumsAreCut) {
  simulated::start_runtime({.order = Order::late, .memory = 64 << 20});
  const simulated::CutSums cut;
  testing::internal::CaptureStdout();
  EXPECT_EQ(printed_by_all(), 0);
  const std::string lines = testing::internal::GetCapturedStdout();
  for (const char* type : {"bf16", "f16"})
    EXPECT_NE(lines.find(std::string("{\"tensor_core\":\"multiply_add of ") + type + "\",\"n\":1024,\"share_of_bits\":1}"),
              std::string::npos)
        << lines;
}

TEST(WrapperProbes, FindAKernelWithAFault) {
  simulated::start_runtime({.order = Order::late, .memory = 64 << 20});
  const auto all = wrapper_probes();
  const auto fault = std::ranges::find(all, "no_copy_wait", [](const WrapperProbe& probe) { return std::string(probe.name); });
  ASSERT_NE(fault, all.end());
  testing::internal::CaptureStdout();
  EXPECT_EQ(fault->print(*fault), 64);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("sum_copies, no_copy_wait\",\"n\":64,\"different\":64}"), std::string::npos);
  EXPECT_EQ(simulated::live_objects(), 0);
}

TEST(WrapperProbes, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const WrapperProbe& probe : wrapper_probes()) EXPECT_TRUE(names.insert(probe.name).second) << probe.name;
}

}  // namespace
}  // namespace st

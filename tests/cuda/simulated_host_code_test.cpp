// The plug-in's host code under ThreadSanitizer: a step of each way to use it, with ranks as threads. Other tests have the numbers.
#include <gtest/gtest.h>

#include <thread>

#include "backend/device_registry.h"
#include "training.h"

namespace st {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

class SimulatedHostCode : public testing::TestWithParam<Keys> {};

// The streams of a process have one order: tests/cuda/CMakeLists.txt runs Late/* and Random/* in processes of their own.
INSTANTIATE_TEST_SUITE_P(Eager, SimulatedHostCode, testing::Values(Keys{{"ranks", "2"}, {"zero", "3"}, {"recompute", "\"full\""}}));
INSTANTIATE_TEST_SUITE_P(Late, SimulatedHostCode, testing::Values(Keys{{"ranks", "2"}, {"zero", "2"}, {"overlap", "\"on\""}}));
INSTANTIATE_TEST_SUITE_P(Random, SimulatedHostCode, testing::Values(Keys{{"ranks", "2"}, {"stages", "2"}, {"offload", "\"gradients\""}}));

TEST_P(SimulatedHostCode, TrainsWithoutARace) {
  Training training{.device = "cuda-simulated", .recipe = {.batch = 2}};
  training.options = {.layers = 1, .width = 4, .heads = 1, .context = 2, .vocabulary = 5};
  training.recipe.set("micro_batches", "2");
  for (const auto& [key, value] : GetParam()) training.recipe.set(key, value);
  const auto trainer = training.trainer();
  EXPECT_GT(trainer->step().loss, 0);
  EXPECT_GT(trainer->step().loss, 0);  // launches what the first has recorded
}

/// The simulated grid's own memory belongs to the thread, which may end before any host waits for the stream.
TEST(SimulatedGrid, AThreadMayEndBeforeTheHostWaitsForItsFirstKernel) {
  const auto device = open_device("cuda-simulated", nullptr);
  const auto stream = device->make_stream();
  constexpr int64_t kBytes = 64;
  const auto memory = device->allocate(kBytes, MemoryRole::other);
  const Operand filled{memory->data(), DType::f32, Shape{kBytes / 4}};
  const Attrs attrs = make_attrs(Op::fill, {{"shape", Ints{kBytes / 4}}});
  const auto kernel = device->prepare(Op::fill, {.in = {}, .out = {&filled, 1}, .attrs = &attrs});
  std::thread([&] { kernel->enqueue(*stream); }).join();
  stream->finish();
}

}  // namespace
}  // namespace st

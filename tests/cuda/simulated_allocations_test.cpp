// A training whose device runs out of memory at any allocation, recordings and pinned memory too: an error, and nothing is left of it.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_backend.h"
#include "sanitized.h"
#include "simulated_runtime.h"
#include "thrown_error.h"
#include "training.h"

namespace st {
namespace {

std::shared_ptr<const nccl::Library> no_nccl() { throw Error(Code::unavailable, "no NCCL"); }

std::unique_ptr<Backend> simulated_backend(std::shared_ptr<MemorySource> memory) {
  return cuda::make_cuda_backend("cuda", "simulated", 0, std::move(memory), no_nccl);
}

std::unique_ptr<Trainer> trainer_of(const Training& training) {
  const auto context =
      std::make_shared<Context>(ContextOptions{.threads = 1, .log = {}, .parallel = {}, .memory = {}, .make_backend = simulated_backend});
  return training.trainer_of(std::make_shared<Model>(context, build_gpt(training.options), 1), training.data());
}

using Keys = std::vector<std::pair<const char*, const char*>>;

Training small_training(const Keys& keys) {
  Training training{.device = "cpu", .recipe = {.batch = 2}};
  training.options = {.layers = 1, .width = 4, .heads = 1, .context = 2, .vocabulary = 5};
  training.recipe.set("micro_batches", "2");
  for (const auto& [key, value] : keys) training.recipe.set(key, value);
  return training;
}

/// A step and all of the state.
std::string whole_run(const Training& training) {
  const auto trainer = trainer_of(training);
  const double loss = trainer->step().loss;
  return text(loss, " ") + trainer->state_digest();
}

TEST(SimulatedAllocations, EachThatFailsIsAnErrorThatLeavesNothing) {
  for (const Keys& keys : {Keys{{"offload", "\"gradients\""}}, Keys{{"ranks", "2"}, {"zero", "2"}}}) {
    simulated::start_runtime({.order = Order::late});
    const Training training = small_training(keys);
    const std::string wanted = whole_run(training);
    EXPECT_EQ(simulated::live_objects(), 0) << "after a whole run";
    int64_t n = 0;
    for (;;) {
      simulated::fail_allocation(n += kSanitized ? 5 : 1);
      const Error error = error_of([&] { EXPECT_EQ(whole_run(training), wanted); });
      EXPECT_EQ(simulated::live_objects(), 0) << n;
      if (!simulated::has_allocation_failed()) {
        EXPECT_EQ(error.code(), Code::ok) << error.message();
        break;
      }
      EXPECT_EQ(error.code(), Code::out_of_memory) << n << ": " << error.message();
    }
    EXPECT_GT(n, 20) << "allocations";
  }
}

/// The first step leaves copies of weights that last, so the second records those kernels that do not make them again.
TEST(SimulatedAllocations, NoStepAfterTheFirstMakesOrFreesAny) {
  for (const Keys& keys : {Keys{}, Keys{{"offload", "\"gradients\""}}, Keys{{"ranks", "2"}, {"zero", "3"}, {"overlap", "\"on\""}},
                           Keys{{"ranks", "2"}, {"stages", "2"}, {"precision", "\"bf16\""}}}) {
    simulated::start_runtime({.order = Order::random});
    const auto trainer = trainer_of(small_training(keys));
    trainer->step();
    const simulated::ResourceCalls first = simulated::resource_calls();
    EXPECT_GT(first.recordings, 0);
    trainer->step();
    const int64_t recordings = simulated::resource_calls().recordings;
    for (int step = 2; step < 4; ++step) trainer->step();
    const std::string name = keys.empty() ? "one rank" : keys.back().first;
    EXPECT_EQ(simulated::resource_calls().resources, first.resources) << name;
    EXPECT_EQ(simulated::resource_calls().recordings, recordings) << name;
  }
}

}  // namespace
}  // namespace st

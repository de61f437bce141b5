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

/// A step and all of the state.
std::string whole_run(const Training& training) {
  const auto context =
      std::make_shared<Context>(ContextOptions{.threads = 1, .log = {}, .parallel = {}, .memory = {}, .make_backend = simulated_backend});
  const auto trainer = training.trainer_of(std::make_shared<Model>(context, build_gpt(training.options), 1), training.data());
  const double loss = trainer->step().loss;
  return text(loss, " ") + trainer->state_digest();
}

TEST(SimulatedAllocations, EachThatFailsIsAnErrorThatLeavesNothing) {
  using Keys = std::vector<std::pair<const char*, const char*>>;
  for (const Keys& keys : {Keys{{"offload", "\"gradients\""}}, Keys{{"ranks", "2"}, {"zero", "2"}}}) {
    simulated::start_runtime({.order = Order::late});
    Training training{.device = "cpu", .recipe = {.batch = 2}};
    training.options = {.layers = 1, .width = 4, .heads = 1, .context = 2, .vocabulary = 5};
    training.recipe.set("micro_batches", "2");
    for (const auto& [key, value] : keys) training.recipe.set(key, value);
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

}  // namespace
}  // namespace st

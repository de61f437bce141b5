// A training whose device runs out of memory at any allocation, recordings and pinned memory too: an error, and nothing is left of it.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/library_products.h"
#include "base/os/loaded_library.h"
#include "fake_cublaslt.h"
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

std::unique_ptr<Backend> simulated_backend_with_library(std::shared_ptr<MemorySource> memory) {
  std::string why_none;
  const cuda::ProductMeans products("simulated", cuda::cublaslt_if_there(cuda::load_cublaslt, why_none));
  EXPECT_EQ(why_none, "");
  return cuda::make_cuda_backend("cuda", "simulated", 0, std::move(memory), no_nccl, [&] { return products.choices(); });
}

using MakeBackend = std::unique_ptr<Backend>(std::shared_ptr<MemorySource>);
using Keys = std::vector<std::pair<const char*, const char*>>;

Training small_training(const Keys& keys, const GptOptions& options) {
  Training training{.device = "cpu", .options = options, .recipe = {.batch = 1}};
  training.recipe.set("micro_batches", "2");
  for (const auto& [key, value] : keys) training.recipe.set(key, value);
  return training;
}

std::unique_ptr<Trainer> trainer_of(const Training& training, MakeBackend* make) {
  const auto context =
      std::make_shared<Context>(ContextOptions{.threads = 1, .log = {}, .parallel = {}, .memory = {}, .make_backend = make});
  return training.trainer_of(std::make_shared<Model>(context, build_gpt(training.options), 1), training.data());
}

/// A step and all of the state.
std::string whole_run(const Training& training, MakeBackend* make) {
  const auto trainer = trainer_of(training, make);
  const double loss = trainer->step().loss;
  return text(loss, " ") + trainer->state_digest();
}

/// Each allocation of a run fails in turn. `left`: what a run has left.
void expect_errors_that_leave_nothing(const Training& training, MakeBackend* make, const std::function<int64_t()>& left) {
  simulated::start_runtime({.order = Order::late});
  const std::string wanted = whole_run(training, make);
  EXPECT_EQ(left(), 0) << "after a whole run";
  int64_t n = 0;
  for (;;) {
    simulated::fail_allocation(n += kSanitized ? 5 : 1);
    const Error error = error_of([&] { EXPECT_EQ(whole_run(training, make), wanted); });
    EXPECT_EQ(left(), 0) << n;
    if (!simulated::has_allocation_failed()) {
      EXPECT_EQ(error.code(), Code::ok) << error.message();
      break;
    }
    EXPECT_EQ(error.code(), Code::out_of_memory) << n << ": " << error.message();
  }
  EXPECT_GT(n, 20) << "allocations";
}

const GptOptions kTiny = {.layers = 1, .width = 4, .heads = 1, .context = 2, .vocabulary = 5};

TEST(SimulatedAllocations, EachThatFailsIsAnErrorThatLeavesNothing) {
  for (const Keys& keys : {Keys{{"offload", "\"gradients\""}}, Keys{{"ranks", "2"}, {"zero", "2"}}})
    expect_errors_that_leave_nothing(small_training(keys, kTiny), simulated_backend, simulated::live_objects);
}

/// Sizes that cuBLASLt takes (fake_cublaslt.cpp).
TEST(SimulatedAllocations, EachThatFailsWithCublasLtLeavesNoneOfItsHandles) {
  const os::LoadedLibrary library(ST_FAKE_CUBLASLT);
  const auto* const counts = library.need<AskFakeCublasLt>("st_fake_cublaslt")();
  const Training training = small_training({{"precision", "\"bf16\""}, {"ranks", "2"}, {"stages", "2"}},
                                           {.layers = 1, .width = 16, .heads = 2, .context = 8, .vocabulary = 24});
  expect_errors_that_leave_nothing(training, simulated_backend_with_library, [&] { return simulated::live_objects() + counts->alive; });
  EXPECT_GT(counts->products, 0);
}

/// The first step leaves copies of weights that last, so the second records those kernels that do not make them again.
TEST(SimulatedAllocations, NoStepAfterTheFirstMakesOrFreesAny) {
  for (const Keys& keys : {Keys{}, Keys{{"offload", "\"gradients\""}}, Keys{{"ranks", "2"}, {"zero", "3"}, {"overlap", "\"on\""}},
                           Keys{{"ranks", "2"}, {"stages", "2"}, {"precision", "\"bf16\""}}}) {
    simulated::start_runtime({.order = Order::random});
    const auto trainer = trainer_of(small_training(keys, kTiny), simulated_backend);
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

// A training whose device runs out of memory at any call that takes some, by CUDA, cuBLASLt or NCCL: an error, and nothing is left of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/library_products.h"
#include "base/os/loaded_library.h"
#include "device/one_exchange.h"
#include "fake_cublaslt.h"
#include "nccl_devices.h"
#include "plan/kernel_segments.h"
#include "sanitized.h"
#include "simulated_contexts.h"
#include "simulated_driver.h"
#include "simulated_runtime.h"
#include "thrown_error.h"
#include "training.h"

namespace st {
namespace {

std::shared_ptr<const nccl::Library> no_nccl() { throw Error(Code::unavailable, "no NCCL"); }

std::unique_ptr<Backend> simulated_backend(std::shared_ptr<MemorySource> memory) {
  return cuda::make_cuda_backend("cuda", "simulated", simulated::held_context(0), std::move(memory), no_nccl);
}

std::unique_ptr<Backend> simulated_backend_with_library(std::shared_ptr<MemorySource> memory) {
  std::string why_none;
  const cuda::ProductMeans products("simulated", cuda::cublaslt_if_there(cuda::load_cublaslt, why_none));
  EXPECT_EQ(why_none, "");
  return cuda::make_cuda_backend("cuda", "simulated", simulated::held_context(0), std::move(memory), no_nccl,
                                 [&] { return products.choices(); });
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

/// The call and what it returns where there is no memory.
bool names_what_failed(const Error& error) {
  const std::string_view message = error.message();
  const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
  if (error.code() == Code::out_of_memory)
    return says("allocate: ") || says("returned 2 (cudaErrorMemoryAllocation: out of memory)") ||
           says("returned 3 (CUBLAS_STATUS_ALLOC_FAILED)");
  return error.code() == Code::unavailable && (says("cuda: cublasLtCreate returned 1 (CUBLAS_STATUS_NOT_INITIALIZED); the device may") ||
                                               (says("nccl: ") && says("returned 2 (unhandled system error")));
}

/// Each call of `run` that takes memory fails in turn. `left`: what a run has left. The last run is one without a failure.
void expect_errors_that_leave_nothing(const std::function<Error()>& run, const std::function<int64_t()>& left) {
  int64_t n = 0;
  for (;;) {
    simulated::fail_allocation(n += kSanitized ? 5 : 1);
    const Error error = run();
    EXPECT_EQ(left(), 0) << n << ": " << error.message();
    if (!simulated::has_allocation_failed()) {
      EXPECT_EQ(error.code(), Code::ok) << error.message();
      break;
    }
    EXPECT_TRUE(names_what_failed(error)) << n << ": " << error.message();
  }
  simulated::fail_allocation(0);
  EXPECT_GT(n, 20) << "calls";
}

void expect_errors_that_leave_nothing(const Training& training, MakeBackend* make, const std::function<int64_t()>& left) {
  simulated::start_runtime({.order = Order::late});
  const std::string wanted = whole_run(training, make);
  EXPECT_EQ(left(), 0) << "after a whole run";
  expect_errors_that_leave_nothing([&] { return error_of([&] { EXPECT_EQ(whole_run(training, make), wanted); }); }, left);
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
  const auto asks = library.need<FakeCublasLtAsks>("st_fake_cublaslt_asks");
  asks(simulated::is_failing);
  expect_errors_that_leave_nothing(training, simulated_backend_with_library, [&] { return simulated::live_objects() + counts->alive; });
  asks(nullptr);

  const auto trainer = trainer_of(training, simulated_backend_with_library);
  const int64_t created = counts->created, products = counts->products;
  for (int step = 0; step < 3; ++step) trainer->step();
  EXPECT_EQ(counts->created, created) << "descriptions, layouts and preferences made in steps";
  EXPECT_GT(counts->products, products);
}

std::shared_ptr<const nccl::Library> fake_nccl() { return nccl::functions_of(os::LoadedLibrary(ST_FAKE_NCCL)); }

TEST(SimulatedAllocations, EachThatFailsWhileNcclConnectsIsAnErrorThatLeavesNothing) {
  const os::LoadedLibrary library(ST_FAKE_NCCL);
  library.need<void (*)(int (*)())>("ncclFakeAsksDevice")([] { return simulated::current_device(); });
  const auto asks = library.need<void (*)(bool (*)())>("ncclFakeAsksFailure");
  asks(simulated::is_failing);
  const auto alive = library.need<int (*)()>("ncclFakeAlive");
  simulated::start_runtime({.order = Order::late});
  // The error of a rank that does not blame another one.
  const auto run = [] {
    Error first(Code::ok, "");
    for (const std::exception_ptr& caught : on_ranks(2, [](DirectExchange& group) {
           const auto backend = cuda::make_cuda_backend("cuda", "simulated", simulated::held_context(group.rank()), nullptr, fake_nccl);
           connect(group, *backend);
           OneExchange one(*backend, group, Op::tensor_sum, DType::f32, 4, 4, 4);
           one.set(bytes_as(DType::f32, {1, 2, 3, 4}));
           one.run(2);
           EXPECT_EQ(one.result(), bytes_as(DType::f32, {2, 4, 6, 8}));
         }))
      if (const Error error = error_of(caught); error.code() != Code::ok && error.code() != Code::rank_failed) first = error;
    return first;
  };
  expect_errors_that_leave_nothing(run, [&] {
    remove_left_over();
    return simulated::live_objects() + alive();
  });
  asks(nullptr);
}

/// The first step leaves copies of weights that last, so the second records again the segments that made them, without these. A plan counts
/// kernels, and the device runs a few more: what some of them are made of.
TEST(SimulatedAllocations, NoStepAfterTheFirstMakesOrFreesAny) {
  for (const Keys& keys :
       {Keys{}, Keys{{"precision", "\"bf16\""}}, Keys{{"offload", "\"gradients\""}},
        Keys{{"ranks", "2"}, {"zero", "3"}, {"overlap", "\"on\""}}, Keys{{"ranks", "2"}, {"stages", "2"}, {"precision", "\"bf16\""}}}) {
    simulated::start_runtime({.order = Order::random});
    const auto trainer = trainer_of(small_training(keys, kTiny), simulated_backend);
    std::string name = "one rank";
    for (const auto& [key, value] : keys) name.append(" ").append(key).append(" ").append(value);
    const simulated::ResourceCalls before = simulated::resource_calls();
    trainer->step();
    const simulated::ResourceCalls first = simulated::resource_calls();
    EXPECT_GT(first.recordings, before.recordings);
    trainer->step();
    const int64_t recordings = simulated::resource_calls().recordings;
    const bool has_copies = makes(trainer->plan(), Copy::lasting);
    EXPECT_EQ(recordings > first.recordings, has_copies) << name;
    if (trainer->recipe().ranks == 1) {
      const int64_t works = simulated::resource_calls().recorded_works - before.recorded_works, planned = recorded_kernels(trainer->plan());
      EXPECT_GE(works, planned) << name;
      EXPECT_LE(works, 2 * planned) << name;
    }
    for (int step = 2; step < 4; ++step) trainer->step();
    EXPECT_EQ(simulated::resource_calls().resources, first.resources) << name;
    EXPECT_EQ(simulated::resource_calls().recordings, recordings) << name;
  }
}

}  // namespace
}  // namespace st

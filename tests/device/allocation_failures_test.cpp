// A device that runs out of memory at any allocation: the error says what was asked for, nothing is left, and a later run works.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "delayed_backend.h"
#include "refusal.h"
#include "train/predictor.h"
#include "training.h"

namespace st {
namespace {

/// A context whose device can be told to fail.
struct FailingDevice {
  DelayedBackend* device = nullptr;  // of the context
  std::shared_ptr<Context> context = std::make_shared<Context>(ContextOptions{
      .threads = 1, .log = {}, .parallel = {}, .memory = {}, .make_backend = [this](const std::shared_ptr<MemorySource>& source) {
        auto made = std::make_unique<DelayedBackend>(make_cpu_backend(source), source, Order::late);
        device = made.get();
        return made;
      }});
};

/// All that a run of a step, an evaluation and a look at the state tells.
std::string whole_run(const std::shared_ptr<Context>& context, const Training& training) {
  const auto trainer = training.trainer_of(std::make_shared<Model>(context, build_gpt(training.options), 1), training.data());
  const double loss = trainer->step().loss;
  return text(loss, " ", trainer->evaluate(training.data()).loss, " ") + trainer->state_digest();
}

TEST(AllocationFailures, EachIsNamedLeavesNothingAndDoesNotHinderTheNextRun) {
  const std::vector<std::vector<std::pair<const char*, const char*>>> recipes = {
      {{"accumulate", "2"}, {"precision", "\"bf16\""}, {"offload", "\"gradients\""}},
      {{"ranks", "4"}, {"stages", "2"}, {"zero", "2"}, {"accumulate", "2"}},
      {{"ranks", "2"}, {"tensor", "2"}},
  };
  for (const auto& keys : recipes) {
    Training training{.device = "cpu", .recipe = {.batch = 2}};
    training.options = {.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 17};
    for (const auto& [key, value] : keys) training.recipe.set(key, value);
    const std::string of_cpu =
        whole_run(std::make_shared<Context>(ContextOptions{.threads = 1, .log = {}, .parallel = {}, .memory = {}}), training);
    const FailingDevice failing;
    int64_t n = 1;
    for (;; ++n) {
      failing.device->fail_allocation(n);
      const Error error = error_of([&] { EXPECT_EQ(whole_run(failing.context, training), of_cpu); });
      EXPECT_EQ(failing.device->allocated_bytes(), 0) << n;
      if (!failing.device->has_failed()) {
        EXPECT_EQ(error.code(), Code::ok) << error.message();
        break;
      }
      EXPECT_TRUE(is_error(error, Code::out_of_memory, {"cannot allocate " + std::to_string(failing.device->failed_bytes()) + " bytes"}))
          << n;
      failing.device->fail_allocation(0);
      EXPECT_EQ(whole_run(failing.context, training), of_cpu) << n;
      EXPECT_EQ(failing.device->allocated_bytes(), 0) << n;
    }
    EXPECT_GT(n, 5);
  }
}

}  // namespace
}  // namespace st

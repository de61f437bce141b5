// A program of its own, since it counts all allocations of the process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "allocation_count.h"
#include "models/gpt.h"
#include "sequences.h"
#include "train/trainer.h"

namespace st {
namespace {

TEST(AllocationCount, SeesNewAndMallocOfAnyKind) {  // the counter can count
  const int64_t before = allocation_count();
  auto a = std::make_unique<std::string>(100, 'x');
  EXPECT_GE(allocation_count() - before, 2);
  const int64_t middle = allocation_count();
  void* volatile b = std::aligned_alloc(64, 256);
  EXPECT_EQ(allocation_count() - middle, 1);
  std::free(b);
}

class StepAllocations : public ::testing::TestWithParam<const char*> {};

TEST_P(StepAllocations, NoneAfterTheFirstStepOnAnyThread) {
  const auto context =
      std::make_shared<Context>(ContextOptions{.device = GetParam(), .threads = 2, .log = {}, .parallel = {}, .memory = {}});
  for (const int64_t micro_batches : {1, 3}) {
    const auto model =
        std::make_shared<Model>(context, build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 5, .vocabulary = 17}), 1);
    Recipe recipe;
    recipe.device = GetParam();
    recipe.dropout = 0.1;
    recipe.batch = 3;
    recipe.accumulate = micro_batches;
    Trainer trainer(model, recipe, std::make_shared<Sequences>(50, 5, 17));
    trainer.step();
    const int64_t before = allocation_count();
    for (int i = 0; i < 20; ++i) trainer.step();
    EXPECT_EQ(allocation_count(), before) << micro_batches << " micro-batches, from a dataset";

    const auto rows = static_cast<size_t>(trainer.rows_per_step());
    const std::vector<int32_t> tokens(rows * 5, 3), targets(rows * 5, 4);
    const Shape shape{static_cast<int64_t>(rows), 5};
    const std::vector<HostView> batch = {plain_view("tokens", DType::i32, shape, tokens.data()),
                                         plain_view("targets", DType::i32, shape, targets.data())};
    trainer.step(batch);
    const int64_t again = allocation_count();
    for (int i = 0; i < 20; ++i) trainer.step(batch);
    for (int i = 0; i < 20; ++i)
      while (!trainer.advance(batch, 0)) {
      }
    EXPECT_EQ(allocation_count(), again) << micro_batches << " micro-batches, from the host, whole and in slices";

    // Fewer rows: their plan is made once.
    std::vector<HostView> fewer = batch;
    for (HostView& view : fewer) view.shape[0] = std::max<int64_t>(1, shape[0] - 1);
    trainer.step(fewer);
    const int64_t third = allocation_count();
    for (int i = 0; i < 20; ++i) trainer.step(fewer);
    EXPECT_EQ(allocation_count(), third) << micro_batches << " micro-batches, the last one short";

    const auto pair = [&] {
      const Shape one{recipe.batch, 5};
      const HostView inputs[] = {plain_view("tokens", DType::i32, one, tokens.data()),
                                 plain_view("targets", DType::i32, one, targets.data())};
      trainer.forward(inputs);
      trainer.backward_own_loss();
    };
    pair();
    trainer.apply();
    const int64_t last = allocation_count();
    for (int i = 0; i < 20; ++i) {
      for (int64_t k = 0; k < micro_batches; ++k) pair();
      trainer.apply();
    }
    EXPECT_EQ(allocation_count(), last) << micro_batches << " pairs of forward and backward";
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, StepAllocations, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace st

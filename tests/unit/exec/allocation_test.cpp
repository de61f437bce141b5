// A separate program, because it counts all allocations of the process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "allocation_count.h"
#include "models/gpt.h"
#include "rank_group.h"
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

/// Expects no allocation from the second call on.
void expect_no_allocation(const std::string& what, const std::function<void()>& call) {
  call();
  const int64_t before = allocation_count();
  for (int i = 0; i < 20; ++i) call();
  EXPECT_EQ(allocation_count(), before) << what;
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
    SCOPED_TRACE(std::to_string(micro_batches) + " micro-batches");
    expect_no_allocation("from a dataset", [&] { trainer.step(); });

    const auto rows = static_cast<size_t>(trainer.rows_per_step());
    const std::vector<int32_t> tokens(rows * 5, 3), targets(rows * 5, 4);
    const Shape shape{static_cast<int64_t>(rows), 5};
    const std::vector<HostView> batch = {plain_view("tokens", DType::i32, shape, tokens.data()),
                                         plain_view("targets", DType::i32, shape, targets.data())};
    expect_no_allocation("from the host", [&] { trainer.step(batch); });
    expect_no_allocation("from the host, in slices", [&] {
      while (!trainer.advance(batch, 0)) {
      }
    });

    // The plan for fewer rows is made once.
    std::vector<HostView> fewer = batch;
    for (HostView& view : fewer) view.shape[0] = std::max<int64_t>(1, shape[0] - 1);
    expect_no_allocation("the last one short", [&] { trainer.step(fewer); });

    const auto pair = [&] {
      const Shape one{recipe.batch, 5};
      const HostView inputs[] = {plain_view("tokens", DType::i32, one, tokens.data()),
                                 plain_view("targets", DType::i32, one, targets.data())};
      trainer.forward(inputs);
      trainer.backward_own_loss();
    };
    expect_no_allocation("pairs of forward and backward", [&] {
      for (int64_t k = 0; k < micro_batches; ++k) pair();
      trainer.apply();
    });
  }
}

// The buffers of collectives are allocated up front, with the host's loss too.
TEST(GroupAllocations, NoneAfterTheFirstStepsOnAnyRank) {
  for (const int64_t zero : {0, 2})
    for (const char* overlap : {"on", "off"})
      each_of_group(2, [&](int rank, Communicator& own) {
        const auto context =
            std::make_shared<Context>(ContextOptions{.device = "cpu", .threads = 1, .log = {}, .parallel = {}, .memory = {}});
        const auto model =
            std::make_shared<Model>(context, build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 5, .vocabulary = 17}), 1);
        Recipe recipe;
        recipe.device = "cpu";
        recipe.batch = 3;
        recipe.micro_batches = 4;
        recipe.zero = zero;
        recipe.overlap = overlap;
        recipe.bucket = 4096;
        Trainer trainer(model, recipe, nullptr, PlanOptions(), &own);
        const std::vector<int32_t> tokens(30, 3), targets(30, 4);
        const auto views = [&](int64_t rows) {
          return std::vector<HostView>{plain_view("tokens", DType::i32, {rows, 5}, tokens.data()),
                                       plain_view("targets", DType::i32, {rows, 5}, targets.data())};
        };
        const std::vector<HostView> own_rows = views(6), pair = views(3);
        const auto step = [&] { trainer.step(own_rows); };
        const auto step_by_pairs = [&] {
          for (int k = 0; k < 2; ++k) {
            trainer.forward(pair);
            trainer.backward_own_loss();
          }
          trainer.apply();
        };
        const auto expect_none_on_any_rank = [&](const char* what, const std::function<void()>& call) {
          for (int i = 0; i < 3; ++i) call();
          own.barrier("all are warm");
          const int64_t before = allocation_count();
          own.barrier("all have counted");
          for (int i = 0; i < 20; ++i) call();
          own.barrier("all are done");
          EXPECT_EQ(allocation_count(), before) << what << " on rank " << rank << ", zero " << zero << ", overlap " << overlap;
          own.barrier("all have looked");
        };
        expect_none_on_any_rank("a step", step);
        expect_none_on_any_rank("pairs of forward and backward", step_by_pairs);
      });
}

// Messages between stages, too, and the record of what each stage ran.
TEST(StageAllocations, NoneAfterTheFirstStepsOnAnyThread) {
  for (const char* schedule : {"1f1b", "zb-v"})
    for (const int64_t data_ranks : {1, 2}) {
      const auto context =
          std::make_shared<Context>(ContextOptions{.device = "cpu", .threads = 1, .log = {}, .parallel = {}, .memory = {}});
      const auto model =
          std::make_shared<Model>(context, build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 5, .vocabulary = 17}), 1);
      Recipe recipe;
      recipe.device = "cpu";
      recipe.batch = 3;
      recipe.micro_batches = 6;
      recipe.stages = 2;
      recipe.ranks = 2 * data_ranks;
      recipe.zero = data_ranks == 1 ? 0 : 2;
      recipe.schedule = schedule;
      Trainer trainer(model, recipe, std::make_shared<Sequences>(50, 5, 17));
      const auto rows = static_cast<size_t>(trainer.rows_per_step());
      const std::vector<int32_t> tokens(rows * 5, 3), targets(rows * 5, 4);
      const Shape shape{static_cast<int64_t>(rows), 5};
      const std::vector<HostView> batch = {plain_view("tokens", DType::i32, shape, tokens.data()),
                                           plain_view("targets", DType::i32, shape, targets.data())};
      for (int i = 0; i < 3; ++i) trainer.step(batch);  // queues and lists grow
      SCOPED_TRACE(std::string(schedule) + ", data ranks " + std::to_string(data_ranks));
      expect_no_allocation("from the host", [&] { trainer.step(batch); });
      for (int i = 0; i < 3; ++i) trainer.step();
      expect_no_allocation("from a dataset", [&] { trainer.step(); });
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, StepAllocations, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace st

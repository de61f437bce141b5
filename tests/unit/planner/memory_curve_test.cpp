#include "planner/memory_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "planned_runs.h"

namespace st {
namespace {

int64_t of(const MemoryMoment& moment, Arena arena) { return moment.bytes[static_cast<size_t>(arena)]; }

TEST(MemoryCurve, ReachesTheBytesOfThePlan) {
  const RankPlan rank = plan_of_rank(run_of(kSmall, R"({"batch":2,"accumulate":3})"), 0);
  const MemoryLayout& memory = rank.plan.memory;
  const std::vector<MemoryMoment> moments = memory_curve(rank.plan, rank.trace);
  ASSERT_EQ(moments.size(), 7U) << "forward and backward of 3 micro-batches, and the update";
  double before = 0;
  std::array<int64_t, kArenas> most{};
  for (const MemoryMoment& moment : moments) {
    EXPECT_GE(moment.began, before);
    EXPECT_GT(moment.ended, moment.began);
    before = moment.ended;
    for (size_t arena = 0; arena < kArenas; ++arena) most[arena] = std::max(most[arena], moment.bytes[arena]);
    for (const Arena held : {Arena::parameters, Arena::gradients, Arena::optimizer}) EXPECT_EQ(of(moment, held), memory.of(held));
  }
  EXPECT_DOUBLE_EQ(before, shares_alone(rank.trace).all());
  EXPECT_EQ(most[static_cast<size_t>(Arena::stash)], memory.of(Arena::stash));
  EXPECT_LE(most[static_cast<size_t>(Arena::activations)], memory.of(Arena::activations));
  EXPECT_GE(most[static_cast<size_t>(Arena::activations)], memory.of(Arena::activations) / 2) << "places that nothing uses at once";
}

TEST(MemoryCurve, OfAStageHasTheMicroBatchesInFlight) {
  for (const int32_t stage : {0, 1, 3}) {
    const RankPlan rank = plan_of_rank(run_of(kSmall, R"({"ranks":4,"stages":4,"batch":2,"accumulate":6,"schedule":"1f1b"})"), stage);
    const Plan& plan = rank.plan;
    ASSERT_FALSE(plan.memory.stash.empty());
    const StashBuffers& buffers = plan.memory.stash.front();
    EXPECT_EQ(buffers.count, 4 - stage);  // 1F1B
    const int64_t beside = plan.memory.of(Arena::stash) - buffers.count * buffers.bytes;
    int32_t in_flight = 0;
    for (const MemoryMoment& moment : memory_curve(plan, rank.trace)) {
      const Phase phase = plan.program.sections[static_cast<size_t>(moment.section)].phase;
      if (phase == Phase::forward) ++in_flight;
      EXPECT_EQ(of(moment, Arena::stash), beside + in_flight * buffers.bytes) << "stage " << stage << ", " << moment.micro_batch;
      if (phase == Phase::backward) --in_flight;
    }
    EXPECT_EQ(in_flight, 0);
  }
}

}  // namespace
}  // namespace st

// The order of every kind of plan is proved, and a plan that lacks a wait runs differently if and only if its proof fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "late_run.h"
#include "models/gpt.h"
#include "plan/ordering.h"
#include "planner/rank_plan.h"
#include "recipe/kernel_needs_of.h"

namespace st {
namespace {

/// A tied weight, and shards of unequal size.
PlannedRun run_of(const std::string& json, int32_t layers = 2) {
  const GptOptions tied{.layers = layers, .width = 36, .heads = 4, .context = 8, .vocabulary = 88};
  PlannedRun run{.model = build_gpt(tied), .recipe = {}, .machine = machine_named("a100-80g")};
  run.recipe.merge(json);
  return run;
}

std::string with_more(const std::string& recipe, const std::string& more) { return recipe.substr(0, recipe.size() - 1) + "," + more + "}"; }

std::vector<std::string> on_data_ranks() {
  std::vector<std::string> all;
  for (const int zero : {0, 1, 2, 3})
    for (const char* reduce : {"micro", "step"})
      for (const char* precision : {"fp32", "bf16"})
        all.push_back(text(R"({"batch":2,"ranks":3,"bucket":20000,"zero":)", zero, R"(,"reduce":")", reduce, R"(","precision":")",
                           precision, R"(","accumulate":)", precision[0] == 'b' ? 3 : 1, "}"));
  return all;
}

std::vector<std::string> on_stages() {
  std::vector<std::string> all;
  for (const char* schedule : {R"("schedule":"1f1b")", R"("schedule":"gpipe")", R"("schedule":"interleaved","stage_chunks":2)",
                               R"("schedule":"zb-h1")", R"("schedule":"zb-v")"})
    for (const char* ranks :
         {R"("ranks":2,"zero":0)", R"("ranks":4,"zero":1)", R"("ranks":4,"zero":3,"precision":"bf16")", R"("ranks":8,"tensor":2,"zero":2)"})
      all.push_back(text(R"({"batch":2,"stages":2,"accumulate":4,"bucket":20000,)", schedule, ",", ranks, "}"));
  all.emplace_back(R"({"batch":2,"stages":4,"ranks":4,"accumulate":6,"precision":"bf16"})");
  return all;
}

void expect_ordered(const Plan& plan) {
  const Ordering ordering = ordering_of(plan);
  for (const Unordered& fault : ordering.faults) ADD_FAILURE() << text_of(plan, fault);
  for (const BrokenPromise& broken : ordering.broken) ADD_FAILURE() << text_of(plan, broken);
  EXPECT_GT(ordering.conflicts, 0);
  EXPECT_EQ(ordering.streams > 1, ordering.waits > 0);
}

/// The axes along which a rank waits for others in its update before the update's first write of the state.
std::set<MeshAxis> met_before_the_state_is_written(const Plan& plan) {
  std::set<MeshAxis> met;
  for (size_t i = plan.begin_of_update; i < plan.instructions.size(); ++i) {
    const Instruction& at = plan.instructions[i];
    if (at.kind == Instruction::Kind::exchange || at.kind == Instruction::Kind::await)
      met.insert(plan.exchanges[static_cast<size_t>(at.exchange)].axis);
    if (at.kind != Instruction::Kind::kernel) continue;
    const auto is_state = [&](SlotId slot) {
      const Role role = plan.program.slot(slot).role;
      return role == Role::parameter || role == Role::optimizer;
    };
    if (std::ranges::any_of(plan.program.sections[static_cast<size_t>(at.section)].graph[at.node].writes, is_state)) return met;
  }
  ADD_FAILURE() << "the update writes no state";
  return met;
}

/// Ranks on one device rely on it: one whose kernel has failed never comes, so no other rank writes its state (runtime/exec/README.md).
void expect_that_the_update_waits(const Plan& plan, const Mesh& mesh) {
  const std::set<MeshAxis> met = met_before_the_state_is_written(plan);
  for (const MeshAxis axis : {MeshAxis::data, MeshAxis::tensor, MeshAxis::stage})
    EXPECT_TRUE(mesh.size(axis) == 1 || met.contains(axis)) << name_of(axis);
}

/// The last rank is on the last stage.
void expect_that_the_update_waits(const std::string& json) {
  const PlannedRun run = run_of(json);
  SCOPED_TRACE(json);
  for (const int32_t rank : {0, static_cast<int32_t>(run.recipe.ranks) - 1})
    expect_that_the_update_waits(plan_of_rank(run, rank).plan, mesh_of(run.recipe));
}

/// The first rank and the last one, which is on the last stage.
void expect_ordered(const std::string& json) {
  const PlannedRun run = run_of(json);
  for (const int32_t rank : {0, static_cast<int32_t>(run.recipe.ranks) - 1}) {
    SCOPED_TRACE(text(json, ", rank ", rank));
    const Plan plan = plan_of_rank(run, rank).plan;
    expect_ordered(plan);
    expect_that_the_update_waits(plan, mesh_of(run.recipe));
  }
}

TEST(OrderedPlans, OfOneRankAreOrdered) {
  for (const char* precision : {"fp32", "bf16", "fp16"})
    for (const char* more :
         {R"("accumulate":1)", R"("accumulate":3,"recompute":"blocks")", R"("accumulate":3,"recompute":"attention")",
          R"("accumulate":2,"dropout":0.1)", R"("accumulate":2,"offload":"optimizer")", R"("accumulate":2,"offload":"gradients")"})
      expect_ordered(text(R"({"batch":2,"precision":")", precision, R"(",)", more, "}"));
}

TEST(OrderedPlans, OfDataRanksAreOrdered) {
  for (const std::string& json : on_data_ranks())
    for (const char* more : {R"("overlap":"on")", R"("overlap":"off")", R"("recompute":"blocks","offload":"gradients")"})
      expect_ordered(with_more(json, more));
}

TEST(OrderedPlans, OfTensorRanksAreOrdered) {
  for (const int zero : {0, 1, 2, 3})
    for (const char* more :
         {R"("ranks":2)", R"("ranks":4)", R"("ranks":4,"precision":"bf16","recompute":"blocks")", R"("ranks":4,"offload":"gradients")"})
      expect_ordered(text(R"({"batch":2,"tensor":2,"accumulate":2,"bucket":20000,"zero":)", zero, ",", more, "}"));
}

TEST(OrderedPlans, OfStagesAreOrdered) {
  for (const std::string& json : on_stages()) {
    expect_ordered(json);
    expect_ordered(with_more(json, R"("recompute":"blocks","overlap":"off")"));
    expect_ordered(with_more(json, R"("offload":"gradients")"));
  }
}

TEST(OrderedPlans, OfShortMicroBatchesAndOfAHostsLossAreOrdered) {
  std::vector<std::string> all = on_data_ranks();
  for (const std::string& json : on_stages()) all.push_back(json);
  for (const std::string& json : all) {
    const PlannedRun run = run_of(json);
    const KernelNeeds needs = kernel_needs(run.machine.profile);
    for (int32_t stage = 0; stage < run.recipe.stages; ++stage) {
      SCOPED_TRACE(text(json, ", stage ", stage));
      PlanOptions options;
      options.stage = stage;
      expect_ordered(plan_short_micro_batch(run.model, run.recipe, 1, 1, needs, options));
      expect_ordered(plan_host_loss(run.model, run.recipe, true, nullptr, needs, options));
    }
  }
}

TEST(OrderedPlans, OfAForwardPassAreOrdered) {
  const PlannedRun run = run_of(R"({"batch":2})");
  expect_ordered(plan_inference(run.model, 3, {"logits"}, true, kernel_needs(run.machine.profile)));
}

/// Over all waits of a plan: how many are redundant, and how many are not.
std::pair<int64_t, int64_t> expect_that_proofs_are_right(const Plan& plan) {
  const std::vector<uint64_t> wanted = seen_in_run(plan, Timing::at_once);
  EXPECT_EQ(seen_in_run(plan, Timing::as_late_as_allowed), wanted);
  const std::vector<size_t> redundant = redundant_waits(plan);
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& at = plan.instructions[i];
    const bool waits_for_others = at.kind == Instruction::Kind::await || at.kind == Instruction::Kind::release;
    if (!waits_for_others && at.kind != Instruction::Kind::await_copy) continue;
    const bool is_needed = !std::ranges::binary_search(redundant, i);
    EXPECT_EQ(seen_in_run(plan, Timing::as_late_as_allowed, i) != wanted, is_needed) << "instruction " << i;
  }
  return {std::ssize(redundant), ordering_of(plan).waits - std::ssize(redundant)};
}

TEST(OrderedPlans, AnUpdateWithoutClippingWaitsForAllRanksToo) {
  for (const std::string& json : on_stages())
    for (const char* more : {R"("clip":0)", R"("clip":0,"optimizer":"sgd","overlap":"off")"})
      expect_that_the_update_waits(with_more(json, more));
}

TEST(OrderedPlans, AnUpdateThatWritesTheStateFirstIsFound) {
  Plan plan = plan_of_rank(run_of(R"({"batch":2,"ranks":4,"stages":2})"), 0).plan;
  EXPECT_EQ(met_before_the_state_is_written(plan), (std::set{MeshAxis::data, MeshAxis::stage}));
  const auto update = plan.instructions.begin() + static_cast<ptrdiff_t>(plan.begin_of_update);
  const auto is_along_stages = [&](const Instruction& at) {
    return at.exchange >= 0 && plan.exchanges[static_cast<size_t>(at.exchange)].axis == MeshAxis::stage;
  };
  plan.instructions.erase(std::remove_if(update, plan.instructions.end(), is_along_stages), plan.instructions.end());
  EXPECT_EQ(met_before_the_state_is_written(plan), (std::set{MeshAxis::data}));
}

TEST(OrderedPlans, AWaitIsNeededIfItsPlanRunsDifferentlyWithoutIt) {
  int64_t redundant = 0, needed = 0;
  std::vector<std::string> all = on_data_ranks();
  for (const std::string& json : on_stages()) all.push_back(json);
  for (const std::string& json : all) {
    SCOPED_TRACE(json);
    const PlannedRun run = run_of(json);
    const auto [not_needed, rest] = expect_that_proofs_are_right(plan_of_rank(run, static_cast<int32_t>(run.recipe.ranks) - 1).plan);
    redundant += not_needed;
    needed += rest;
  }
  EXPECT_GT(needed, 100);
  EXPECT_GT(redundant, 0);
  RecordProperty("redundant", static_cast<int>(redundant));
  RecordProperty("needed", static_cast<int>(needed));
}

/// Each window of offloaded state is waited for, and the last one's copy back.
TEST(OrderedPlans, OfOffloadedStateWaitForItsCopies) {
  for (const char* json : {R"({"batch":2,"accumulate":2,"offload":"optimizer"})", R"({"batch":2,"offload":"optimizer","ema_decay":0.9})",
                           R"({"batch":2,"offload":"optimizer","optimizer":"muon","precision":"bf16"})",
                           R"({"batch":2,"ranks":2,"zero":2,"accumulate":2,"offload":"optimizer","overlap":"on"})",
                           R"({"batch":2,"accumulate":2,"offload":"gradients","precision":"bf16"})",
                           R"({"batch":2,"ranks":2,"stages":2,"accumulate":2,"offload":"gradients","precision":"bf16"})"}) {
    SCOPED_TRACE(json);
    const Plan plan = plan_of_rank(run_of(json), 0).plan;
    EXPECT_GT(plan.memory.windows.size(), 2U);
    expect_ordered(plan);
    expect_that_proofs_are_right(plan);
    Plan without = plan;
    std::erase_if(without.instructions, [](const Instruction& at) { return at.kind == Instruction::Kind::await_copy; });
    EXPECT_GT(ordering_of(without).faults.size(), 2 * plan.memory.windows.size()) << "of its fetch, and of the next step's";
  }
}

/// A weight leaves from the copy that the next step fetches. Data rank 1 has none of the gradient of this small one, so it sends none of it
/// back, which would say that the weight has arrived.
TEST(OrderedPlans, OfOffloadedStateFetchAMessageOnceTheLastOneHasLeft) {
  PlannedRun run = run_of(R"({"batch":2,"ranks":4,"stages":2,"zero":1,"accumulate":2,"offload":"gradients"})");
  run.model = build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 8, .vocabulary = 16});
  Plan plan = plan_of_rank(run, 1).plan;
  expect_ordered(plan);
  const auto is_of_window = [&](const Instruction& at) {
    const auto begins = [&](const StateWindow& of) { return of.section == at.section && of.begin == at.node; };
    return at.kind == Instruction::Kind::release && std::ranges::any_of(plan.memory.windows, begins);
  };
  EXPECT_EQ(std::erase_if(plan.instructions, is_of_window), 1U);
  EXPECT_FALSE(ordering_of(plan).holds());
}

/// In a V: chunk 0 has most micro-batches in flight when chunk 1 has few, and the other way around.
constexpr const char* kTableInV =
    R"(0F0,0F1,0F2,3F0,3I0,3W0,3F1,0I0,3I1,0W0,0F3,0I1,0W1,3F2,3I2,3W1,0F4,0I2,0W2,3F3,3I3,3W2,0F5,0I3,0W3,3F4,3I4,)"
    R"(3W3,3W4,0I4,0W4,3F5,3I5,3W5,0I5,0W5\n)"
    R"(1F0,2F0,1F1,2F1,2I0,1I0,1W0,1F2,2I1,1I1,1W1,2F2,2W0,1F3,2I2,1I2,1W2,2F3,2W1,1F4,2I3,1I3,1W3,2F4,2W2,1F5,2I4,)"
    R"(1I4,1W4,2F5,2W3,2W4,2I5,1I5,1W5,2W5)";

/// Buffers of other chunks begin where a message may still be under way: releases of both are proved.
TEST(OrderedPlans, OfChunksThatShareMemoryAreOrderedByTheirReleases) {
  for (const std::string& schedule : {std::string(R"("schedule":"interleaved","stage_chunks":4)"), text(R"("schedule":")", kTableInV, '"')})
    for (const char* ranks : {R"("ranks":2)", R"("ranks":4,"zero":2,"precision":"bf16")"}) {
      const std::string json = text(R"({"batch":2,"stages":2,"accumulate":6,)", schedule, ",", ranks, "}");
      const PlannedRun run = run_of(json, 8);
      for (const int32_t rank : {0, static_cast<int32_t>(run.recipe.ranks) - 1}) {
        SCOPED_TRACE(text(json, ", rank ", rank));
        Plan plan = plan_of_rank(run, rank).plan;
        EXPECT_TRUE(std::ranges::any_of(plan.memory.stash, [](const StashBuffers& of) { return !of.begins.empty(); }));
        expect_ordered(plan);
        EXPECT_GT(expect_that_proofs_are_right(plan).second, 0);
        const auto of_others = [](const Instruction& at) { return at.kind == Instruction::Kind::release && at.within >= 0; };
        EXPECT_GT(std::erase_if(plan.instructions, of_others), 0U);
        EXPECT_FALSE(ordering_of(plan).holds());
      }
    }
}

}  // namespace
}  // namespace st

#include "planner/speed_limit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "models/gpt.h"
#include "planner/blueprint.h"
#include "refusal.h"

namespace st {
namespace {

const GptOptions kGpt2{.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocabulary = 50257};

PlannedRun run_of(std::string_view json, const std::string& machine, int32_t per_node, const std::string& link) {
  PlannedRun run{.model = build_gpt(kGpt2), .recipe = {}, .machine = machine_named(machine)};
  run.recipe.merge(json);
  run.machine.ranks_per_node = per_node;
  run.machine.between_nodes = link_named(link);
  return run;
}

std::string text_of(const PlannedRun& run, bool advises = false) {
  Workers workers(1);
  return Blueprint(run, {.simulates = true, .advises = advises}, workers).text();
}

/// Limits that users meet, and what would help: docs/guides/plan_speed.md.
TEST(SpeedLimit, FourRanksOverASlowLinkHaveTwiceTheSpeedOfOneAndTheFixIsNamed) {
  PlannedRun run = run_of(R"({"ranks":4,"batch":8,"accumulate":8,"precision":"fp16"})", "v100-16g", 1, "25g");
  const std::string slow = text_of(run, true);
  EXPECT_TRUE(
      says(slow, {"  2.03 times the speed of one rank; with 4 ranks at most 4\n  limited by the links between nodes, 2.5 GB/s a rank: "
                  "50.3 % of the step is waits for exchange along data; with twice their rate 3.01 times the speed of one rank\n",
                  "changes and their prices\n  fits  reduce step: +2.2 MB, -38 % time, 3.26 times the speed of one rank\n"}));
  run.machine.between_nodes.bytes_per_second *= 2;
  EXPECT_TRUE(says(text_of(run), {"  3.01 times the speed of one rank"}));
  run.machine.between_nodes.bytes_per_second /= 2;
  run.recipe.set("reduce", "\"step\"");
  EXPECT_TRUE(says(text_of(run), {"  3.26 times the speed of one rank"}));
}

TEST(SpeedLimit, IsTheLongestWait) {
  const auto limit_of = [](const PlannedRun& run) {
    const RankPlan plan = plan_of_rank(run, 0);
    return speed_limit(run, plan, plan.shares(run.recipe), 0);
  };
  const auto tensor = limit_of(run_of(R"({"ranks":4,"batch":8,"tensor":2,"precision":"fp16"})", "v100-16g", 4, "400g"));
  ASSERT_TRUE(tensor);
  EXPECT_FALSE(tensor->is_bubble || tensor->is_between_nodes);
  EXPECT_EQ(tensor->axis, MeshAxis::tensor);
  EXPECT_EQ(tensor->bytes_per_second, machine_named("v100-16g").in_node.bytes_per_second);
  const PlannedRun bubbles = run_of(R"({"ranks":4,"batch":2,"stages":4,"accumulate":4,"precision":"fp16"})", "v100-16g", 4, "400g");
  const auto bubble = limit_of(bubbles);
  ASSERT_TRUE(bubble);
  EXPECT_TRUE(bubble->is_bubble);
  EXPECT_DOUBLE_EQ(bubble->share, plan_of_rank(bubbles, 0).bubble(bubbles.recipe));
  EXPECT_FALSE(limit_of(run_of(R"({"ranks":4,"batch":8,"accumulate":8,"precision":"fp16","reduce":"step"})", "v100-16g", 4, "400g")));
}

/// Twice the rate halves the time that bytes take: a message's latency stays.
TEST(SpeedLimit, OfMessagesIsTheStepOfAMachineWhoseLinkHasTwiceTheRate) {
  PlannedRun run = run_of(R"({"ranks":2,"batch":1,"stages":2,"accumulate":8,"precision":"fp16"})", "v100-16g", 1, "10g");
  run.machine.between_nodes.latency = 2e-3;  // about what the bytes of a message take
  Workers workers(1);
  const Json plan = parse_json(Blueprint(run, {.simulates = true}, workers).json(), "plan");
  const Json* const limit = plan.find("limit");
  ASSERT_NE(limit, nullptr);
  ASSERT_EQ(limit->find("axis")->text(), "stage");
  run.machine.between_nodes.bytes_per_second *= 2;
  const double faster = Blueprint(run, {}, workers).shares().all();
  EXPECT_NEAR(limit->find("step_seconds_at_twice")->number(), faster, 1e-4 * faster);  // collectives of all ranks are faster there too
  EXPECT_LT(faster, 0.98 * plan.find("step_seconds")->number());
}

}  // namespace
}  // namespace st

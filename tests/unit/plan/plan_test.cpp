#include "plan/plan.h"

#include <set>

#include "models/mlp.h"
#include "random_program.h"
#include "small_program.h"

namespace st {
namespace {

Plan mlp_plan(int64_t micro_batches) {
  const Program model = build_mlp({.inputs = 3, .hidden = {4}, .outputs = 2, .activation = "relu", .loss = "mse"});
  Program program = training_program(model, 2, micro_batches);
  MemoryLayout memory = memory_without_workspace(program);
  return make_plan(program, std::move(memory), in_turn(program, micro_batches));
}

const Node& node_of(const Plan& plan, const Instruction& i) { return plan.program.sections[static_cast<size_t>(i.section)].graph[i.node]; }

std::string name_of_slot(const Plan& plan, const Node& node) { return slot_of(plan.program, node.writes[0]).name; }

TEST(Plan, ResolvesWhenByMicroBatch) {
  const Plan plan = mlp_plan(3);
  int64_t stores = 0, adds = 0;
  for (const Instruction& i : plan.instructions) {
    const Node& node = node_of(plan, i);
    EXPECT_TRUE(node.when != When::first || i.micro_batch == 0) << name_of_slot(plan, node);
    EXPECT_TRUE(node.when != When::rest || i.micro_batch > 0) << name_of_slot(plan, node);
    if (node.writes.empty() || name_of_slot(plan, node) != "gradient.layer.0.weight") continue;
    stores += node.op == Op::store;
    adds += node.op == Op::accumulate;
  }
  EXPECT_EQ(stores, 1);
  EXPECT_EQ(adds, 2);
}

TEST(Plan, RunsForwardAndBackwardOfEachMicroBatchThenTheUpdateOnce) {
  const Plan plan = mlp_plan(3);
  std::vector<std::pair<Phase, int32_t>> order;
  for (const Instruction& i : plan.instructions) {
    const std::pair<Phase, int32_t> at{plan.program.sections[static_cast<size_t>(i.section)].phase, i.micro_batch};
    if (order.empty() || order.back() != at) order.push_back(at);
  }
  const std::vector<std::pair<Phase, int32_t>> wanted = {{Phase::forward, 0},  {Phase::backward, 0}, {Phase::forward, 1},
                                                         {Phase::backward, 1}, {Phase::forward, 2},  {Phase::backward, 2},
                                                         {Phase::update, 2}};
  EXPECT_EQ(order, wanted);
}

TEST(Plan, RunsTheLastMicroBatchsNodesInTheLastOnly) {
  Program program = training_program(build_mlp({.inputs = 3, .hidden = {}, .outputs = 2, .activation = "relu", .loss = "mse"}), 2, 2);
  Graph& forward = program.find(Phase::forward)->graph;
  int32_t marked = -1;
  for (int32_t n = 0; n < forward.size(); ++n)
    if (forward[n].op == Op::store) marked = n;
  ASSERT_GE(marked, 0);
  forward[marked].when = When::last;
  const Plan plan = make_plan(program, memory_without_workspace(program), in_turn(program, 2));
  std::vector<int32_t> micro_batches;
  for (const Instruction& i : plan.instructions)
    if (plan.program.sections[static_cast<size_t>(i.section)].phase == Phase::forward && i.node == marked)
      micro_batches.push_back(i.micro_batch);
  EXPECT_EQ(micro_batches, std::vector<int32_t>{1});
}

// The ops of a small regression's training step, written by hand from the textbook: a change here is a change of the step.
TEST(Plan, OfATinyMlpIsTheTextbooksStep) {
  const Plan plan = mlp_plan(1);
  std::string ops;
  Phase phase = Phase::update;
  for (const Instruction& i : plan.instructions) {
    const Phase now = plan.program.sections[static_cast<size_t>(i.section)].phase;
    if (ops.empty() || now != phase) ops += text(ops.empty() ? "" : "\n", name_of(now), ":");
    phase = now;
    const Node& node = node_of(plan, i);
    ops += text(" ", name_of(node.op), node.op == Op::store ? text("(", name_of_slot(plan, node), ")") : "");
  }
  EXPECT_EQ(ops,
            "forward: fused_linear linear mse store(loss_sum) store(loss_count)\n"  // with relu
            "backward: fill mse_backward sum matmul fused_linear matmul\n"          // with relu's slope and the bias's sum
            "update: gradient_norm step_factor store(factor) store(grad_norm) store(skipped) adamw adamw adamw adamw");
}

TEST(Plan, ExplainsPassesProgramMemoryAndInstructions) {
  Plan plan = mlp_plan(1);
  plan.passes = {{.name = "autodiff", .seconds = 0.25, .skipped = false, .nodes = 12}, {.name = "fuse", .skipped = true, .nodes = 12}};
  const std::string text = explain(plan);
  for (const char* part : {"autodiff", "250.000 ms", "skipped", "layer.0.weight", "backward", "parameters", "optimizer", "total",
                           "in 1 micro-batches", "mse_backward", "\nordering: "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(text.find(std::to_string(plan.memory.total())), std::string::npos);
  EXPECT_EQ(text.find("recompute"), std::string::npos);
}

TEST(Plan, ExplainsWhatRecomputeSavesAndCosts) {
  Plan plan = mlp_plan(1);
  plan.recompute = {.stash_before = 4096, .stash_after = 1024, .scopes = {}};
  plan.recompute.scopes.push_back({.region = 1, .name = "layer.0", .stash_bytes = 2048, .cost = {.flops = 3e9, .bytes = 640}, .nodes = 3});
  plan.recompute.scopes.push_back({.region = 2, .name = "layer.1", .stash_bytes = 1024, .cost = {.flops = 5e8, .bytes = 60}, .nodes = 2});
  const std::string text = explain(plan);
  const auto has_line = [&](const std::vector<std::string>& words) {
    return std::ranges::any_of(lines_of(text), [&](std::string_view line) { return words_of(line) == words; });
  };
  EXPECT_TRUE(has_line({"layer.0", "2048", "3.0000", "GFLOP", "640", "bytes", "of", "other", "ops"})) << text;
  EXPECT_TRUE(has_line({"total", "3072", "3.5000", "GFLOP", "700", "bytes", "of", "other", "ops"})) << text;
  EXPECT_TRUE(has_line({"stash", "4096", "bytes", "before,", "1024", "after"})) << text;
}

}  // namespace
}  // namespace st

#include "passes/fuse_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "ir/build.h"
#include "ir/verify.h"
#include "passes/autodiff.h"
#include "passes/memory_plan.h"
#include "passes/scale_loss.h"

namespace st {
namespace {

int64_t losses_of(const Program& program, Op op) {
  int64_t count = 0;
  for (const Section& section : program.sections) count += std::ranges::count(section.graph.nodes, op, &Node::op);
  return count;
}

/// x [4, 3] by a weight [3, 5], in logits and targets; what `loss` makes of them is the loss.
Program differentiated(const std::function<Value(Builder&, Value logits, Value targets)>& loss, bool scaled = false) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  program.batch = 1;
  Builder b(program, 0);
  const Value logits = b.matmul(b.input("x", DType::f32, {4, 3}), b.parameter("w", {3, 5}, {.kind = Init::uniform, .values = {}}));
  program.loss_sum = loss(b, logits, b.input("targets", DType::i64, {4}));
  if (scaled) add_loss_scale(program);
  autodiff(program);
  return program;
}

Value sum_of(Builder& b, Value logits, Value targets) { return b.append(Op::cross_entropy, {logits, targets})[0]; }

Program fused(Program program) {
  fuse_loss(program);
  verify(program, "fuse_loss");
  return program;
}

void expect_fused(const Program& before, const char* what) {
  ASSERT_EQ(losses_of(before, Op::cross_entropy_backward), 1) << what;
  const Program after = fused(before);
  EXPECT_EQ(losses_of(after, Op::fused_cross_entropy), 1) << what;
  EXPECT_EQ(losses_of(after, Op::cross_entropy) + losses_of(after, Op::cross_entropy_backward), 0) << what;
  EXPECT_EQ(after.slots.size(), before.slots.size() - 1) << what << ": no lse is kept";
}

void expect_apart(const Program& before, const char* what) {
  ASSERT_EQ(losses_of(before, Op::cross_entropy_backward), 1) << what;
  const Program after = fused(before);
  EXPECT_EQ(losses_of(after, Op::fused_cross_entropy), 0) << what;
  EXPECT_EQ(after.slots.size(), before.slots.size()) << what;
}

TEST(FuseLoss, JoinsALossWithItsGradientWhereTheSeedIsKnown) {
  expect_fused(differentiated(sum_of), "a constant");
  expect_fused(differentiated(sum_of, true), "the loss scale");
  expect_fused(differentiated([](Builder& b, Value logits, Value targets) { return b.scale(sum_of(b, logits, targets), 0.5); }),
               "half of it");
}

TEST(FuseLoss, SeedsWithTheLossScaleOfTheStep) {
  const Program program = fused(differentiated(sum_of, true));
  const Graph& forward = program.find(Phase::forward)->graph;
  EXPECT_TRUE(
      std::ranges::any_of(forward.nodes, [&](const Node& node) { return node.op == Op::load && node.reads[0] == program.loss_scale; }));
}

TEST(FuseLoss, KeepsWeightsOfRowsAndTheIgnoredIndex) {
  const Program program = fused(differentiated([](Builder& b, Value logits, Value targets) {
    return b.append(Op::cross_entropy, {logits, targets, b.input("weights", DType::f32, {4})}, {{"ignore_index", int64_t{3}}})[0];
  }));
  const auto& nodes = program.find(Phase::forward)->graph.nodes;
  const auto found = std::ranges::find(nodes, Op::fused_cross_entropy, &Node::op);
  ASSERT_NE(found, nodes.end());
  EXPECT_EQ(found->in.size(), 4U);
  EXPECT_EQ(found->attrs.integer("ignore_index"), 3);
}

TEST(FuseLoss, LeavesALossWhoseLogitsBackwardReadsForMore) {
  expect_apart(differentiated([](Builder& b, Value logits, Value targets) {
                 return b.add(sum_of(b, logits, targets), b.as(b.sum(b.mul(logits, logits), {}), DType::f64));
               }),
               "squares of the logits");
}

TEST(FuseLoss, LeavesALossWhoseSeedIsMadeInTheStep) {
  expect_apart(differentiated([](Builder& b, Value logits, Value targets) {
                 const Value factor = b.as(b.sum(logits, {}), DType::f64);
                 return b.mul(sum_of(b, logits, targets), factor);
               }),
               "a product of two losses");
}

TEST(FuseLoss, LeavesALossWhoseLogSumsAreRead) {
  expect_apart(differentiated([](Builder& b, Value logits, Value targets) {
                 const std::vector<Value> made = b.append(Op::cross_entropy, {logits, targets});
                 b.store(made[2], b.program().add_slot({.name = "lse", .type = b.type(made[2]), .role = Role::output, .init = {}}));
                 return made[0];
               }),
               "lse is an output");
}

TEST(FuseLoss, LetsTheGradientLieOverTheLogits) {
  const auto place_of = [](const Program& program, Op op, int32_t output) {
    const MemoryLayout layout = memory_plan(program, [](const Program&, const Section&, const Node&) { return int64_t{0}; });
    const auto& nodes = program.sections[0].graph.nodes;
    const auto found = std::ranges::find(nodes, op, &Node::op);
    return layout.values[0][static_cast<size_t>(found - nodes.begin())][static_cast<size_t>(output)];
  };
  const Program program = fused(differentiated(sum_of));
  EXPECT_EQ(place_of(program, Op::fused_cross_entropy, 2), place_of(program, Op::matmul, 0));

  // Not where somebody reads the logits afterwards.
  const Program read = fused(differentiated([](Builder& b, Value logits, Value targets) {
    const Value loss = sum_of(b, logits, targets);
    b.store(b.scale(logits, 2), b.program().add_slot({.name = "twice", .type = b.type(logits), .role = Role::output, .init = {}}));
    return loss;
  }));
  EXPECT_EQ(losses_of(read, Op::fused_cross_entropy), 1);
  EXPECT_NE(place_of(read, Op::fused_cross_entropy, 2), place_of(read, Op::matmul, 0));
}

}  // namespace
}  // namespace st

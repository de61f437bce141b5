#include "passes/fuse_loss.h"

#include <functional>

#include "small_program.h"

namespace st {
namespace {

/// Logits are x [4, 3] times a weight [3, 5]; `loss` computes the loss from logits and targets.
Program differentiated(const std::function<Value(Builder&, Value logits, Value targets)>& loss, bool scaled = false) {
  SmallProgram s(1);
  const Value logits = s.b.matmul(s.b.input("x", DType::f32, {4, 3}), s.b.parameter("w", {3, 5}, {.kind = Init::uniform, .values = {}}));
  s.program.loss_sum = loss(s.b, logits, s.b.input("targets", DType::i64, {4}));
  if (scaled) add_loss_scale(s.program);
  autodiff(s.program);
  return s.program;
}

Value sum_of(Builder& b, Value logits, Value targets) { return b.append(Op::cross_entropy, {logits, targets})[0]; }

Program fused(Program program) {
  fuse_loss(program);
  verify(program, "fuse_loss");
  return program;
}

void expect_fused(const Program& before, const char* what) {
  ASSERT_EQ(count_of(before, Op::cross_entropy_backward), 1) << what;
  const Program after = fused(before);
  EXPECT_EQ(count_of(after, Op::fused_cross_entropy), 1) << what;
  EXPECT_EQ(count_of(after, Op::cross_entropy) + count_of(after, Op::cross_entropy_backward), 0) << what;
  EXPECT_EQ(after.slots.size(), before.slots.size() - 1) << what << ": no lse is kept";
}

void expect_apart(const Program& before, const char* what) {
  ASSERT_EQ(count_of(before, Op::cross_entropy_backward), 1) << what;
  const Program after = fused(before);
  EXPECT_EQ(count_of(after, Op::fused_cross_entropy), 0) << what;
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
  EXPECT_TRUE(std::ranges::any_of(nodes_of(program, Phase::forward, Op::load),
                                  [&](const Node* load) { return load->reads[0] == program.step.loss_scale; }));
}

TEST(FuseLoss, KeepsWeightsOfRowsAndTheIgnoredIndex) {
  const Program program = fused(differentiated([](Builder& b, Value logits, Value targets) {
    return b.append(Op::cross_entropy, {logits, targets, b.input("weights", DType::f32, {4})}, {{"ignore_index", int64_t{3}}})[0];
  }));
  const auto found = nodes_of(program, Phase::forward, Op::fused_cross_entropy);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]->in.size(), 4U);
  EXPECT_EQ(found[0]->attrs.integer("ignore_index"), 3);
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
    const MemoryLayout layout = memory_without_workspace(program);
    const auto& nodes = program.sections[0].graph.nodes;
    const auto found = std::ranges::find(nodes, op, &Node::op);
    return layout.values[0][static_cast<size_t>(found - nodes.begin())][static_cast<size_t>(output)];
  };
  const Program program = fused(differentiated(sum_of));
  EXPECT_EQ(place_of(program, Op::fused_cross_entropy, 2), place_of(program, Op::matmul, 0));

  // Not fused if another node reads the logits afterwards.
  const Program read = fused(differentiated([](Builder& b, Value logits, Value targets) {
    const Value loss = sum_of(b, logits, targets);
    b.store(b.scale(logits, 2), b.program().add_slot({.name = "twice", .type = b.type(logits), .role = Role::output, .init = {}}));
    return loss;
  }));
  EXPECT_EQ(count_of(read, Op::fused_cross_entropy), 1);
  EXPECT_NE(place_of(read, Op::fused_cross_entropy, 2), place_of(read, Op::matmul, 0));
}

}  // namespace
}  // namespace st

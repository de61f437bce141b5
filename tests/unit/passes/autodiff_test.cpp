#include "passes/autodiff.h"

#include <set>

#include "passes/dropout.h"
#include "random_program.h"
#include "refusal.h"
#include "small_program.h"

namespace st {
namespace {

/// An input "x" [2, 3] and a scalar loss.
struct SmallGraph : SmallProgram {
  SmallGraph() : SmallProgram(1) {}
  Value x = b.input("x", DType::f32, {2, 3});

  Value parameter(const std::string& name, const Shape& shape) { return b.parameter(name, shape, {.kind = Init::ones, .values = {}}); }
  void differentiate(Value loss) {
    program.loss_sum = loss;
    autodiff(program);
    verify(program, "autodiff");
  }
  bool has(const std::string& slot) const { return program.slot_named(slot) >= 0; }
};

Program differentiated_gpt(double dropout = 0) {
  Program program = bind(small_gpt(), 3);
  set_dropout(program, dropout, 1);
  return with_backward(std::move(program));
}

TEST(Autodiff, ATiedWeightHasOneGradientAScopeInGraphOrder) {
  const Program program = differentiated_gpt();
  const SlotId weight = program.slot_named("token_embedding.weight");
  const SlotId embedding = program.slot_named("gradient.token_embedding.weight");
  const SlotId head = program.slot_named("gradient.token_embedding.weight.use1");
  ASSERT_GE(embedding, 0);
  ASSERT_GE(head, 0);
  EXPECT_EQ(slot_of(program, embedding).of, weight);
  EXPECT_EQ(slot_of(program, head).of, weight);
  EXPECT_LT(program.slot_named("gradient.token_embedding.weight.use2"), 0);
  const Graph& backward = program.find(Phase::backward)->graph;
  for (const Node* store : nodes_of(backward, Op::store)) {
    const Op source = backward[store->in[0].node].op;
    EXPECT_TRUE(store->writes[0] != embedding || source == Op::embedding_backward) << name_of(source);
    EXPECT_TRUE(store->writes[0] != head || source == Op::matmul) << name_of(source);
  }
}

TEST(Autodiff, TwoUsesInOneScopeAreOneGradient) {
  SmallGraph s;
  const Value w = s.parameter("w", {3, 3});
  s.differentiate(s.b.sum(s.b.matmul(s.b.matmul(s.x, w), s.b.load(s.program.slot_named("w"))), {}));
  EXPECT_TRUE(s.has("gradient.w"));
  EXPECT_FALSE(s.has("gradient.w.use1"));
}

TEST(Autodiff, AUseWithoutGradientIsNotCounted) {
  SmallGraph s;
  s.b.enter("first");
  const Value w = s.parameter("w", {3});
  const Value sign = s.b(Op::sign, {w});  // leads to the loss, but its gradient is zero
  s.b.leave();
  s.b.enter("second");
  const Value y = s.b.mul(s.b.mul(s.x, s.b.load(s.program.slot_named("first.w"))), sign);
  s.b.leave();
  s.differentiate(s.b.sum(y, {}));
  EXPECT_TRUE(s.has("gradient.first.w"));
  EXPECT_FALSE(s.has("gradient.first.w.use1"));
}

TEST(Autodiff, AParameterThatTheLossDoesNotSeeGetsNoGradient) {
  SmallGraph s;
  const Value w = s.parameter("used", {3});
  const Value unused = s.parameter("unused", {3});
  s.b.mul(s.x, unused);
  s.parameter("never", {3});
  s.differentiate(s.b.sum(s.b.mul(s.x, w), {}));
  EXPECT_TRUE(s.has("gradient.used"));
  EXPECT_FALSE(s.has("gradient.unused"));
  EXPECT_FALSE(s.has("gradient.never"));
}

TEST(Autodiff, AFrozenParameterGetsNoGradientAndPassesItOn) {
  SmallGraph s;
  const Value below = s.parameter("below", {3, 3}), frozen = s.parameter("frozen", {3, 3});
  s.program.slot(s.program.slot_named("frozen")).trainable = false;
  s.differentiate(s.b.sum(s.b.matmul(s.b.matmul(s.x, below), frozen), {}));
  EXPECT_TRUE(s.has("gradient.below"));
  EXPECT_FALSE(s.has("gradient.frozen"));
}

TEST(Autodiff, StashesOnlyWhatWasComputedAndNothingTwice) {
  std::vector<Program> programs = {differentiated_gpt(0), differentiated_gpt(0.1)};
  for (uint64_t seed = 0; seed < 20; ++seed) programs.push_back(training_program(random_program(seed, 25), 3, 1));
  for (const Program& program : programs) {
    std::set<Value> stashed;
    for (const Node* store : nodes_of(forward_of(program), Op::store)) {
      if (slot_of(program, store->writes[0]).role != Role::stash) continue;
      const Op source = forward_of(program)[store->in[0].node].op;
      EXPECT_TRUE(source != Op::load && source != Op::fill && source != Op::reshape) << name_of(source);
      EXPECT_TRUE(stashed.insert(store->in[0]).second);
    }
    EXPECT_FALSE(stashed.empty());
  }
}

TEST(Autodiff, LeavesTheForwardGraphAsItWas) {
  Program before = bind(random_program(3, 30), 3);
  scale_loss(before, 1);
  Program after = before;
  autodiff(after);
  EXPECT_EQ(after.loss_sum, before.loss_sum);
  const std::vector<Node>&old_nodes = forward_of(before).nodes, &new_nodes = forward_of(after).nodes;
  ASSERT_LE(old_nodes.size(), new_nodes.size());
  for (size_t n = 0; n < new_nodes.size(); ++n) {
    if (n < old_nodes.size()) {
      EXPECT_TRUE(old_nodes[n].op == new_nodes[n].op && old_nodes[n].in == new_nodes[n].in && old_nodes[n].attrs == new_nodes[n].attrs);
    } else {
      EXPECT_EQ(new_nodes[n].op, Op::store);
    }
  }
}

TEST(Autodiff, RefusesALossWithoutParameters) {
  SmallGraph s;
  const Value loss = s.b.sum(s.x, {});
  EXPECT_TRUE(refuses({"does not depend on any trainable parameter"}, [&] { s.differentiate(loss); }));
  SmallProgram none;
  EXPECT_THROW(autodiff(none.program), Error);
}

TEST(Autodiff, RefusesTheGradientOfAStatistic) {
  SmallGraph s;
  const auto norm = s.b.append(Op::layer_norm, {s.x, s.parameter("gamma", {3}), s.parameter("beta", {3})});
  const Value mean = s.b.sum(norm[1], {});
  EXPECT_TRUE(refuses(Code::unsupported, {"output \"mean\" of layer_norm"}, [&] { s.differentiate(mean); }));
}

TEST(Autodiff, RefusesTrainableWeightsOfALossNamingIt) {
  SmallGraph s;
  const Value weights = s.parameter("weights", {2, 3});
  const auto loss = s.b.append(Op::mse, {s.b.mul(s.x, s.parameter("w", {3})), s.x, weights});
  EXPECT_TRUE(refuses(Code::unsupported, {"mse"}, [&] { s.differentiate(loss[0]); }));
}

}  // namespace
}  // namespace st

#include "passes/loss_terms.h"

#include "refusal.h"
#include "small_program.h"

namespace st {
namespace {

/// A loss of two cross-entropies, the second with its own smoothing; a third one is only an output.
Program two_losses() {
  SmallProgram s;
  Builder& b = s.b;
  const Value logits = b.input("logits", DType::f32, {4, 5}), targets = b.input("targets", DType::i64, {4});
  const Value first = b.append(Op::cross_entropy, {logits, targets})[0];
  const Value second = b.append(Op::cross_entropy, {logits, targets}, {{"label_smoothing", 0.5}})[0];
  s.program.outputs.push_back({"metric.plain", b.append(Op::cross_entropy, {logits, targets})[0]});
  s.program.loss_sum = b.add(first, second);
  return s.program;
}

using Terms = std::vector<std::pair<double, double>>;

Terms terms_of(const Program& program) {
  Terms terms;
  for (const Node* node : nodes_of(program, Op::cross_entropy))
    terms.emplace_back(node->attrs.real("label_smoothing"), node->attrs.real("z_loss"));
  return terms;
}

TEST(LossTerms, AreSetInTheLossWhereTheModelNamesNone) {
  Program program = two_losses();
  set_loss_terms(program, 0.1, 1e-4);
  EXPECT_EQ(terms_of(program), (Terms{{0.1, 1e-4}, {0.5, 1e-4}, {0, 0}}));
}

TEST(LossTerms, OfZeroLeaveTheModelsOwn) {
  Program program = two_losses();
  set_loss_terms(program, 0, 0);
  EXPECT_EQ(terms_of(program), (Terms{{0, 0}, {0.5, 0}, {0, 0}}));
}

TEST(LossTerms, AreRefusedWithoutACrossEntropy) {
  SmallProgram s;
  const Value x = s.b.input("x", DType::f32, {4});
  s.program.loss_sum = s.b.append(Op::mse, {x, x})[0];
  EXPECT_TRUE(refuses({"label_smoothing 0.1", "need a loss made of cross_entropy"}, [&] { set_loss_terms(s.program, 0.1, 0); }));
}

}  // namespace
}  // namespace st

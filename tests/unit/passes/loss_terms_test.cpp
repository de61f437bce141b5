#include "passes/loss_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/build.h"

namespace st {
namespace {

/// A loss of two cross-entropies, the second with a smoothing of its own; a third is an output only.
Program two_losses() {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(program, 0);
  const Value logits = b.input("logits", DType::f32, {4, 5}), targets = b.input("targets", DType::i64, {4});
  const Value first = b.append(Op::cross_entropy, {logits, targets})[0];
  const Value second = b.append(Op::cross_entropy, {logits, targets}, {{"label_smoothing", 0.5}})[0];
  program.outputs.push_back({"metric.plain", b.append(Op::cross_entropy, {logits, targets})[0]});
  program.loss_sum = b.add(first, second);
  return program;
}

std::vector<std::pair<double, double>> terms_of(const Program& program) {
  std::vector<std::pair<double, double>> terms;
  for (const Node& node : program.sections[0].graph.nodes)
    if (node.op == Op::cross_entropy) terms.emplace_back(node.attrs.real("label_smoothing"), node.attrs.real("z_loss"));
  return terms;
}

TEST(LossTerms, AreSetInTheLossWhereTheModelNamesNone) {
  Program program = two_losses();
  set_loss_terms(program, 0.1, 1e-4);
  EXPECT_EQ(terms_of(program), (std::vector<std::pair<double, double>>{{0.1, 1e-4}, {0.5, 1e-4}, {0, 0}}));
}

TEST(LossTerms, OfZeroLeaveTheModelsOwn) {
  Program program = two_losses();
  set_loss_terms(program, 0, 0);
  EXPECT_EQ(terms_of(program), (std::vector<std::pair<double, double>>{{0, 0}, {0.5, 0}, {0, 0}}));
}

TEST(LossTerms, AreRefusedWithoutACrossEntropy) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(program, 0);
  const Value x = b.input("x", DType::f32, {4});
  program.loss_sum = b.append(Op::mse, {x, x})[0];
  try {
    set_loss_terms(program, 0.1, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.message(), testing::HasSubstr("label_smoothing is 0.1"));
    EXPECT_THAT(error.message(), testing::HasSubstr("made of none"));
  }
}

}  // namespace
}  // namespace st

#include "passes/seed_outputs.h"

#include "base/error.h"
#include "program_run.h"
#include "small_program.h"

namespace st {
namespace {

/// p = x w, x [batch, 2], w [2, 3]; loss mse(p, y).
Program product() {
  SmallProgram s;
  Builder& b = s.b;
  const Value x = b.input("x", DType::f32, {-1, 2}), y = b.input("y", DType::f32, {-1, 3});
  const Value w = b.parameter("w", {2, 3}, {.kind = Init::normal, .scale = 1, .values = {}});
  const Value p = b.matmul(x, w);
  const auto loss = b.append(Op::mse, {p, y});
  s.program.loss_sum = loss[0];
  s.program.loss_count = loss[1];
  s.program.outputs.push_back({"p", p});
  return bind(s.program, 2);
}

/// Backward from the host's gradients only.
Program seeded(Program program) {
  autodiff(program, seed_outputs(program, false));
  verify(program, "autodiff");
  return program;
}

const std::vector<float> kX = {1, 2, 3, 4}, kG = {1, 0, -1, 2, 0.5F, 0};

/// w's gradient x^T g, computed by hand.
std::vector<float> expected(const std::vector<float>& g, float times = 1) {
  std::vector<float> dw(6);
  for (size_t k = 0; k < 2; ++k)
    for (size_t c = 0; c < 3; ++c) dw[3 * k + c] = times * (kX[k] * g[c] + kX[2 + k] * g[3 + c]);
  return dw;
}

TEST(SeedOutputs, BackwardBeginsFromTheHostsGradients) {
  ProgramRun run(seeded(product()));
  run.bind("x", kX.data());
  run.bind("output_gradient.p", kG.data());
  run.run();
  EXPECT_EQ(run.floats("gradient.w"), expected(kG));
}

TEST(SeedOutputs, GradientsOfSeveralOutputsAddUp) {
  Program program = product();
  Builder b(program, 0);
  const Value p = program.outputs[0].value;
  program.outputs.push_back({"twice", b.scale(p, 2)});
  program.outputs.push_back({"again", p});
  ProgramRun run(seeded(program));
  run.bind("x", kX.data());
  for (const char* name : {"p", "twice", "again"}) run.bind(std::string("output_gradient.") + name, kG.data());
  run.run();
  EXPECT_EQ(run.floats("gradient.w"), expected(kG, 4));
  EXPECT_EQ(run.floats("output.p"), run.floats("output.again"));
}

TEST(SeedOutputs, WithoutTheOwnLossItsInputsAreNotRead) {
  Program program = product();
  seed_outputs(program, false);
  EXPECT_FALSE(program.loss_sum);
  const SlotId y = program.slot_named("y");
  for (const Node& node : program.sections[0].graph.nodes)
    for (const SlotId slot : node.reads) EXPECT_NE(slot, y);
}

TEST(SeedOutputs, TheOwnLossIsOneMoreRoot) {
  Program both = product();
  scale_loss(both, 1);
  autodiff(both, seed_outputs(both, true));
  verify(both, "autodiff");
  ProgramRun a(with_backward(product())), b(both);
  const std::vector<float> zeros(6);
  for (ProgramRun* run : {&a, &b}) {
    run->bind("x", kX.data());
    run->bind("y", kG.data());
  }
  b.bind("output_gradient.p", zeros.data());
  *b.data<double>("own_loss_seed") = both.loss_seed;
  a.run();
  b.run();
  EXPECT_EQ(a.floats("gradient.w"), b.floats("gradient.w"));
  *b.data<double>("own_loss_seed") = 0;
  b.bind("output_gradient.p", kG.data());
  b.run();
  EXPECT_EQ(b.floats("gradient.w"), expected(kG));
}

TEST(SeedOutputs, AParameterMayBeAnOutputItself) {
  Program program = product();
  Builder b(program, 0);
  program.outputs = {{"w", b.load(program.slot_named("w"))}};
  ProgramRun run(seeded(program));
  run.bind("output_gradient.w", kG.data());
  run.run();
  EXPECT_EQ(run.floats("gradient.w"), kG);
}

TEST(SeedOutputs, MetricsAndWholeNumbersGetNoGradient) {
  Program program = product();
  Builder b(program, 0);
  const Value p = program.outputs[0].value;
  program.outputs.push_back({"metric.mean", b(Op::mean, {p})});
  program.outputs.push_back({"class", b(Op::argmax, {p})});
  EXPECT_EQ(seed_outputs(program, false).size(), 1U);
  EXPECT_GE(program.slot_named("output.metric.mean"), 0);
  EXPECT_LT(program.slot_named("output_gradient.metric.mean"), 0);
  EXPECT_LT(program.slot_named("output_gradient.class"), 0);
}

TEST(SeedOutputs, OutputsThatNoParameterReachesAreNothingToTrainOn) {
  Program program = product();
  Builder b(program, 0);
  program.outputs = {{"x", b.load(program.slot_named("x"))}};
  EXPECT_THROW(seeded(program), Error);
}

}  // namespace
}  // namespace st

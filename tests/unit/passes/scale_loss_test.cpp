#include "passes/scale_loss.h"

#include <cmath>

#include "base/error.h"
#include "ir/counted_loss.h"
#include "models/mlp.h"
#include "passes/clip.h"
#include "program_run.h"
#include "small_program.h"

namespace st {
namespace {

TEST(ScaleLoss, TheSeedIsThePowerOfTwoBelowTheInverseOfTheRows) {
  const Program gpt = build_gpt({.layers = 1, .width = 4, .heads = 1, .context = 5, .vocabulary = 7});
  struct Case {
    int64_t batch, micro_batches;
    double seed;
  };
  for (const Case& c : {Case{3, 1, 1.0 / 16}, Case{3, 2, 1.0 / 32}, Case{16, 4, 1.0 / 512}, Case{1, 1, 1.0 / 8}}) {
    Program program = bind(gpt, c.batch);
    EXPECT_EQ(rows_of_loss(program, c.batch), c.batch * 5);
    EXPECT_EQ(rows_of_loss(gpt, c.batch), c.batch * 5);
    scale_loss(program, c.micro_batches);
    EXPECT_EQ(program.loss_seed, c.seed);
  }
}

TEST(ScaleLoss, RefusesAProgramWithoutLoss) {
  SmallProgram s;
  EXPECT_THROW(scale_loss(s.program, 1), Error);
}

constexpr int64_t kScaledRows = 6, kInputs = 3;

/// Mean squared error of x w: as a sum with a count, or as a mean computed in the graph.
Program regression(bool mean_in_graph) {
  SmallProgram s(kScaledRows);
  Program& program = s.program;
  Builder& b = s.b;
  const Value x = b.input("x", DType::f32, {kScaledRows, kInputs}), y = b.input("y", DType::f32, {kScaledRows, 1});
  const Value z = b.matmul(x, b.parameter("w", {kInputs, 1}, {.kind = Init::normal, .values = {}}));
  const Value d = b.sub(z, y);
  const Value loss = mean_in_graph ? b(Op::mean, {b.mul(d, d)}, {{"axes", Ints{}}}) : b.append(Op::mse, {z, y})[0];
  const CountedLoss counted = counted_loss(b, loss);
  program.loss_sum = counted.sum;
  program.loss_count = counted.count;
  return program;
}

TEST(ScaleLoss, TheFactorRestoresTheGradientOfTheMean) {
  const auto x = some_floats(kScaledRows * kInputs, 1), y = some_floats(kScaledRows, 2);
  std::vector<double> norms;
  std::vector<std::vector<float>> gradients;
  for (const bool mean_in_graph : {false, true})
    for (const int64_t nominal : {1, 5}) {  // the nominal rows change the seed, not the result
      Program program = with_backward(regression(mean_in_graph), nominal);
      clip(program, 0);
      ProgramRun run(program);
      run.bind("x", x.data());
      run.bind("y", y.data());
      run.run();
      norms.push_back(*run.data<double>("grad_norm"));
      auto gradient = run.floats("gradient.w");
      for (float& g : gradient) g *= *run.data<float>("factor");
      gradients.push_back(gradient);
    }
  EXPECT_EQ(norms[0], norms[1]);  // a power of two: exact
  EXPECT_EQ(norms[2], norms[3]);
  EXPECT_GT(norms[0], 0.1);
  EXPECT_NEAR(norms[0], norms[2], 1e-6 * norms[0]);  // fp32 roundings of two graphs
  for (size_t i = 0; i < gradients[0].size(); ++i) EXPECT_NEAR(gradients[0][i], gradients[2][i], 1e-6 * norms[0]);

  // Both equal 2/n X^T (X w - y), computed by hand.
  Program program = regression(false);
  scale_loss(program, 1);
  ProgramRun run(program);
  const auto w = run.floats("w");
  for (int64_t j = 0; j < kInputs; ++j) {
    double slope = 0;
    for (int64_t i = 0; i < kScaledRows; ++i) {
      double error = -y[static_cast<size_t>(i)];
      for (int64_t k = 0; k < kInputs; ++k)
        error += static_cast<double>(x[static_cast<size_t>(i * kInputs + k)]) * w[static_cast<size_t>(k)];
      slope += 2.0 / kScaledRows * error * x[static_cast<size_t>(i * kInputs + j)];
    }
    EXPECT_NEAR(gradients[0][static_cast<size_t>(j)], slope, 1e-6 * norms[0]);
  }
}

}  // namespace
}  // namespace st

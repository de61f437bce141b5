// Training in fp16 with a scaled loss: a step that overflows is skipped and changes only the scale; a step's update is unscaled by the
// scale of its own forward (traps.md, T10 to T12).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/build.h"
#include "training.h"

namespace st {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const GptOptions kScaledGpt = {.layers = 2, .width = 39, .heads = 3, .context = 17, .vocabulary = 61};

Recipe fp16(int64_t batch, int64_t accumulate, int64_t growth_interval = 2000) {
  Recipe recipe;
  recipe.precision = "fp16", recipe.batch = batch, recipe.accumulate = accumulate, recipe.warmup = 0;
  recipe.loss_scale_growth_interval = growth_interval;
  return recipe;
}

TEST(LossScale, Fp16LearnsAsFarAsFp32) {
  const auto end_of = [](const std::string& precision) {
    Recipe recipe = fp16(4, 1, 20);
    recipe.precision = precision, recipe.lr = 1e-2;
    const auto trainer = Training{.device = "cpu", .threads = 2, .recipe = recipe}.trainer();
    const std::vector<double> all = losses_of(*trainer, 120);
    double sum = 0;
    for (size_t i = all.size() - 10; i < all.size(); ++i) sum += all[i] / 10;
    EXPECT_LT(sum, 0.8 * all[0]) << precision;
    return sum;
  };
  // The criterion: not worse than fp32 by more than 1 %.
  EXPECT_LT(end_of("fp16"), 1.01 * end_of("fp32"));
}

// Gradients of 1e-6 are 0 or denormal in fp16; scaled, they keep their precision.
TEST(LossScale, KeepsGradientsThatFp16WouldLose) {
  const auto first_step = [](double scale) {
    Recipe recipe = fp16(64, 1);
    recipe.loss_scale = scale;
    const auto trainer = Training{.device = "cpu", .threads = 2, .options = kScaledGpt, .recipe = recipe}.trainer();
    trainer->step();
    std::vector<float> made(static_cast<size_t>(39 * 117));
    trainer->gradient("block.0.attention.qkv.weight", plain_view("", DType::f32, {39, 117}, made.data()));
    return made;
  };
  const auto scaled = first_step(1 << 20), plain = first_step(0x1p-10), finer = first_step(1 << 21);
  double off = 0, lost = 0, norm = 0;
  for (size_t i = 0; i < scaled.size(); ++i) {
    norm += std::pow(finer[i], 2);
    off += std::pow(scaled[i] - finer[i], 2);
    lost += std::pow(plain[i] - finer[i], 2);
  }
  EXPECT_LT(off, 1e-10 * norm) << "powers of two change no digit where nothing is denormal";
  EXPECT_GT(lost, 0.01 * norm);
}

TEST(LossScale, OthersKeepTheirPrograms) {
  for (const char* precision : {"fp32", "bf16"}) {
    Recipe plain, scaled;
    plain.precision = scaled.precision = precision;
    scaled.loss_scale = 1024;
    const auto a = Training{.device = "cpu", .recipe = plain}.trainer(), b = Training{.device = "cpu", .recipe = scaled}.trainer();
    EXPECT_LT(a->plan().program.step.loss_scale, 0) << precision;
    EXPECT_EQ(losses_of(*a, 3), losses_of(*b, 3));
    EXPECT_EQ(a->state_digest(), b->state_digest());
    EXPECT_EQ(a->step().loss_scale, 1);
  }
}

// --- small graphs whose numbers are exact in 16 bits

/// y = x w with x [rows, 4] and w [4, 3], initially zero; mean squared error against t.
Program regression() {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(program, 0);
  const Value x = b.input("x", DType::f32, {kBatch, 4}), t = b.input("t", DType::f32, {kBatch, 3});
  const auto loss = b.append(Op::mse, {b.matmul(x, b.parameter("w", {4, 3}, {.values = {}})), t});
  program.loss_sum = loss[0];
  program.loss_count = loss[1];
  return program;
}

struct Regression {
  std::unique_ptr<Trainer> trainer;
  int64_t rows;
  std::vector<float> x, t;

  explicit Regression(const Recipe& recipe, const std::string& device = "cpu") : rows(recipe.batch * recipe.accumulate) {
    Recipe mine = recipe;
    mine.device = device;
    const Training training{.device = device, .threads = 2};
    trainer = std::make_unique<Trainer>(std::make_shared<Model>(training.context(), regression(), 1), mine, nullptr);
    for (int64_t i = 0; i < rows * 4; ++i) x.push_back(static_cast<float>((i * 7 + i / 4) % 5 - 2));      // -2 to 2
    for (int64_t i = 0; i < rows * 3; ++i) t.push_back(static_cast<float>((i * 5 + i / 3) % 9 - 4) / 4);  // quarters, -1 to 1
  }
  std::vector<HostView> batch() const {
    return {plain_view("x", DType::f32, {rows, 4}, x.data()), plain_view("t", DType::f32, {rows, 3}, t.data())};
  }
  StepReport step() const { return trainer->step(batch()); }
  std::vector<float> weights() const {
    std::vector<float> w(12);
    trainer->model().get(trainer->model().parameter_named("w"), plain_view("w", DType::f32, {4, 3}, w.data()));
    return w;
  }
  std::vector<float> gradient() const {
    std::vector<float> g(12);
    trainer->gradient("w", plain_view("", DType::f32, {4, 3}, g.data()));
    return g;
  }
  /// d mean / d w in fp64 at w = 0.
  std::vector<double> first_gradient() const {
    std::vector<double> g(12);
    for (int64_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < 4; ++i)
        for (size_t j = 0; j < 3; ++j)
          g[i * 3 + j] +=
              double{x[static_cast<size_t>(r) * 4 + i]} * -2 * double{t[static_cast<size_t>(r) * 3 + j]} / static_cast<double>(rows * 3);
    return g;
  }
};

// T11. AdamW's first displacement of a zero weight is -lr g / (|g| + epsilon), here with epsilon far above g, so a gradient that is wrong
// by a factor 2 or 1/2 gives a displacement wrong by the same factor. Every step grows the scale, and clipping does not bind.
TEST(LossScale, AGrowthStepsUpdateIsUnscaledByItsOwnForwardsScale) {
  for (const char* device : {"cpu", "reference"}) {
    for (const double clip : {0.0, 1000.0}) {
      for (const double scale : {1024.0, 1000.0}) {  // the second is not a power of two: one more rounding
        Recipe recipe = fp16(4, 2, 1);
        recipe.clip = clip, recipe.epsilon = 64, recipe.weight_decay = 0, recipe.lr = 0.5;
        recipe.loss_scale_initial = scale;
        const Regression it(recipe, device);
        const StepReport report = it.step();
        EXPECT_EQ(report.loss_scale, scale);
        EXPECT_EQ(it.trainer->loss_scale(), 2 * scale) << "a growth step";
        const auto w = it.weights();
        const auto g = it.first_gradient();
        double squares = 0;
        for (size_t i = 0; i < w.size(); ++i) {
          const double want = -0.5 * g[i] / (std::abs(g[i]) + 64);
          const double ulp = std::nextafter(std::abs(static_cast<float>(want)), kInf) - std::abs(static_cast<float>(want));
          // A scale that is not a power of two also rounds each row's gradient to fp16.
          EXPECT_NEAR(w[i], want, scale == 1024 ? 2 * ulp : 1e-3 * std::abs(want)) << device << " clip " << clip << " element " << i;
          squares += g[i] * g[i];
        }
        EXPECT_NEAR(report.grad_norm, std::sqrt(squares), scale == 1024 ? 1e-12 : 1e-3) << "of the true gradient";
      }
    }
  }
}

TEST(LossScale, AnyScaleThatNothingOverflowsOrUnderflowsWithGivesTheSameBits) {
  std::string want;
  for (const double scale : {64.0, 256.0, 4096.0}) {
    Recipe recipe = fp16(4, 2);
    recipe.loss_scale = scale;
    const Regression it(recipe);
    it.step();
    if (want.empty()) want = it.trainer->state_digest();
    EXPECT_EQ(it.trainer->state_digest(), want) << scale;
    const std::vector<float> g = it.gradient();
    const auto exact = it.first_gradient();
    for (size_t i = 0; i < g.size(); ++i) EXPECT_EQ(g[i], static_cast<float>(exact[i])) << "given out unscaled";
  }
}

// T10 with the graph's own loss: the overflowing row is in each micro-batch in turn.
TEST(LossScale, AnOverflowInAnyMicroBatchSkipsTheStepAndBacksOff) {
  Recipe recipe = fp16(2, 3, 4);
  Regression it(recipe);
  it.step();
  for (size_t row = 0; row < 6; ++row) {
    const std::string before = it.trainer->state_digest();
    const double scale = it.trainer->loss_scale();
    const float kept = std::exchange(it.t[row * 3 + 1], row % 2 == 0 ? 60000.0F : -kInf);  // times the scale, past fp16
    const StepReport skipped = it.step();
    EXPECT_TRUE(skipped.skipped) << row;
    EXPECT_EQ(skipped.loss_scale, scale);
    EXPECT_EQ(skipped.step, static_cast<int64_t>(row) + 2) << "an attempt all the same";
    EXPECT_EQ(it.trainer->state_digest(), before);
    EXPECT_EQ(it.trainer->loss_scale(), scale / 2);
    it.t[row * 3 + 1] = kept;
  }
  EXPECT_FALSE(it.step().skipped);
}

// Warm-up and AdamW's bias correction count updates, not skipped steps, so the run equals one without the skipped step.
TEST(LossScale, ASkippedStepLeavesTheRestOfTheRunAsItWere) {
  Recipe recipe = fp16(2, 2);
  recipe.warmup = 5;
  Regression with(recipe), without(recipe);
  for (int step = 1; step <= 8; ++step) {
    if (step % 3 == 0) {
      const float kept = std::exchange(with.x[5], kInf);
      EXPECT_TRUE(with.step().skipped);
      with.x[5] = kept;
    }
    const StepReport a = with.step(), b = without.step();
    EXPECT_EQ(a.lr, b.lr);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.loss_scale, step < 3 ? b.loss_scale : b.loss_scale / (step < 6 ? 2 : 4));
  }
  EXPECT_EQ(with.trainer->state_digest(), without.trainer->state_digest());
}

TEST(LossScale, AShortLastMicroBatchHasTheStepsScale) {
  for (const double scale : {128.0, 2048.0}) {
    Recipe recipe = fp16(4, 2);
    recipe.loss_scale = scale;
    Regression it(recipe);
    it.rows = 7;
    it.trainer->step(it.batch());
    const std::vector<float> g = it.gradient();
    const auto exact = it.first_gradient();
    for (size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], exact[i], 1e-7) << scale;  // one rounding, of numbers below 1
  }
}

// A step that counts no row is not an overflow; otherwise the scale would be halved again and again.
TEST(LossScale, AStepThatCountsNothingKeepsTheScale) {
  const auto trainer = Training{.device = "cpu", .recipe = fp16(2, 1)}.trainer(false);
  const std::vector<int32_t> tokens(14, 1), ignored(14, -100);
  const StepReport report = trainer->step(std::vector<HostView>{plain_view("tokens", DType::i32, {2, 7}, tokens.data()),
                                                                plain_view("targets", DType::i32, {2, 7}, ignored.data())});
  EXPECT_TRUE(report.skipped);
  EXPECT_EQ(trainer->loss_scale(), 65536);
}

// Six good steps between two overflows, a growth interval of 5: the scale stays in range, and the loss falls.
TEST(LossScale, ARunWithAnInfEverySeventhStepReportsItAndConverges) {
  Recipe recipe = fp16(8, 1, 5);
  recipe.lr = 0.02;
  Regression it(recipe);
  const double first = it.step().loss;
  double last = first;
  std::vector<int> skipped;
  for (int step = 2; step <= 210; ++step) {
    const float kept = it.x[3];
    if (step % 7 == 0) it.x[3] = kInf;
    const StepReport report = it.step();
    it.x[3] = kept;
    if (report.skipped) skipped.push_back(step);
    if (!report.skipped) last = report.loss;
    EXPECT_GE(report.loss_scale, 1024) << step;
  }
  std::vector<int> want;
  for (int step = 7; step <= 210; step += 7) want.push_back(step);
  EXPECT_EQ(skipped, want);

  Recipe exact = recipe;
  exact.precision = "fp32";
  const Regression fp32(exact);
  double best = 0;
  for (int step = 0; step < 180; ++step) best = fp32.step().loss;
  EXPECT_LT(last, 0.6 * first);
  EXPECT_NEAR(last, best, 0.01 * best);
}

// --- the host's own losses

/// Two outputs with separate weights: y_i = x w_i.
Program two_heads() {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(program, 0);
  const Value x = b.input("x", DType::f32, {kBatch, 4});
  for (const char* name : {"a", "b"})
    program.outputs.push_back({name, b.matmul(x, b.parameter(std::string("w.") + name, {4, 3}, {.kind = Init::normal, .values = {}}))});
  return program;
}

struct Heads {
  std::unique_ptr<Trainer> trainer;
  std::vector<float> x = std::vector<float>(8, 1), a = std::vector<float>(6, 0.25F), b = std::vector<float>(6, -0.5F);

  explicit Heads(const Recipe& recipe) {
    const Training training{.device = "cpu", .threads = 2};
    trainer = std::make_unique<Trainer>(std::make_shared<Model>(training.context(), two_heads(), 1), recipe, nullptr);
  }
  void forward() const { trainer->forward(std::vector<HostView>{plain_view("x", DType::f32, {2, 4}, x.data())}); }
  void backward() const {
    trainer->backward(std::vector<HostView>{plain_view("a", DType::f32, {2, 3}, a.data()), plain_view("b", DType::f32, {2, 3}, b.data())});
  }
  std::vector<float> gradient(const char* name) const {
    std::vector<float> made(12);
    trainer->gradient(name, plain_view("", DType::f32, {4, 3}, made.data()));
    return made;
  }
};

TEST(LossScale, OfAHostsLossTakesItsGradientsAsTheyAreAndGivesThemOutSo) {
  const Heads it([] {
    Recipe recipe = fp16(2, 1, 1);
    recipe.loss_scale_initial = 1024;
    return recipe;
  }());
  for (int step = 0; step < 3; ++step) {
    for (int pair = 0; pair < 3; ++pair) it.forward(), it.backward();
    const StepReport report = it.trainer->apply();
    EXPECT_EQ(report.loss_scale, 1024 << step);
    EXPECT_EQ(it.gradient("w.a"), std::vector<float>(12, 3 * 2 * 0.25F));  // micro-batches x rows
    EXPECT_EQ(it.gradient("w.b"), std::vector<float>(12, 3 * 2 * -0.5F));
    EXPECT_NEAR(report.grad_norm, std::sqrt(12 * (1.5 * 1.5 + 3 * 3)), 1e-12);
  }
}

// T10 for each tensor and micro-batch: only this tensor's gradient in only this micro-batch is infinite.
TEST(LossScale, AnInfInOneTensorsGradientInOneMicroBatchSkipsTheStep) {
  Heads it(fp16(2, 1));
  int64_t attempts = 0;
  for (const bool into_a : {true, false}) {
    for (int bad = 0; bad < 3; ++bad) {
      for (const float value : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
        const std::string before = it.trainer->state_digest();
        const double scale = it.trainer->loss_scale();
        for (int pair = 0; pair < 3; ++pair) {
          float& at = (into_a ? it.a : it.b)[4];
          const float kept = at;
          if (pair == bad) at = value;
          it.forward(), it.backward();
          at = kept;
        }
        const StepReport report = it.trainer->apply();
        EXPECT_TRUE(report.skipped);
        EXPECT_EQ(report.step, ++attempts);
        EXPECT_EQ(it.trainer->state_digest(), before);
        EXPECT_EQ(it.trainer->loss_scale(), std::max(1.0, scale / 2));
      }
    }
  }
}

// T12: at the finite check the accumulator holds NaN and no inf.
TEST(LossScale, InfinitiesThatSumToNaNAreCaught) {
  Heads it(fp16(2, 1));
  const std::string before = it.trainer->state_digest();
  for (const float value : {kInf, -kInf}) {
    it.a[0] = value;
    it.forward(), it.backward();
  }
  EXPECT_TRUE(it.trainer->apply().skipped);
  EXPECT_TRUE(std::isnan(it.gradient("w.a")[0]));
  EXPECT_EQ(it.trainer->state_digest(), before);
  EXPECT_EQ(it.trainer->loss_scale(), 32768);
}

// 4 rows of 60000 / 65536 x 65536: each is finite in fp16, and their sum in fp32; a reduction rounded to 16 bits would overflow.
TEST(LossScale, SumsPastFp16AreNoOverflow) {
  Heads it(fp16(2, 1));
  it.a.assign(6, 60000.0F / 65536);
  for (int pair = 0; pair < 4; ++pair) it.forward(), it.backward();
  EXPECT_FALSE(it.trainer->apply().skipped);
  EXPECT_EQ(it.gradient("w.a")[0], 8 * 60000.0F / 65536);
  it.a.assign(6, 70000.0F / 65536);  // one gradient past fp16
  it.forward(), it.backward();
  EXPECT_TRUE(it.trainer->apply().skipped);
}

}  // namespace
}  // namespace st

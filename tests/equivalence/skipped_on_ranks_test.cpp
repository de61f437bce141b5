// A gradient that is not finite, on any rank: all ranks skip, only the counts change, and the next step is bitwise that of one rank
// (traps.md, T10 and T12).
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ir/build.h"
#include "rank_training.h"
#include "sanitized.h"

namespace st {
namespace {

/// y = x0 w0 + x1 w1 + x2 w2 with all w initially zero: then the gradient of w0 is x0 times -2 y and does not depend on the others.
struct Sum {
  static constexpr int64_t kRows = 5;
  static constexpr std::array<int64_t, 3> kWidths = {3000, 1100, 5};  // each of three ranks has a shard of the first, but not of all others

  static constexpr std::array kInputs = {"x0", "x1", "x2"};

  Sum() : y(kRows, 0.5F) {
    for (const int64_t width : kWidths) {
      std::vector<float>& values = x.emplace_back(static_cast<size_t>(kRows * width));
      for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    }
  }
  static std::shared_ptr<Model> model() {
    Program program;
    program.sections.push_back({{}, Phase::forward, 0, 0});
    Builder b(program, 0);
    Value sum{};
    for (size_t i = 0; i < kWidths.size(); ++i) {
      const Value product = b.matmul(b.input(kInputs[i], DType::f32, {kBatch, kWidths[i]}),
                                     b.parameter(text("w", i), {kWidths[i], 1}, {.kind = Init::zeros, .values = {}}));
      sum = i == 0 ? product : b.add(sum, product);
    }
    const auto loss = b.append(Op::mse, {sum, b.input("y", DType::f32, {kBatch, 1})});
    program.loss_sum = loss[0];
    program.loss_count = loss[1];
    return std::make_shared<Model>(Training{.device = "cpu"}.context(), std::move(program), 1);
  }
  static std::unique_ptr<Trainer> trainer(int64_t ranks, int64_t zero, const char* precision, const char* reduce = "\"micro\"") {
    Recipe recipe{.device = "cpu", .batch = 1};
    recipe.ranks = ranks;
    recipe.zero = zero;
    recipe.micro_batches = kRows;
    recipe.set("precision", precision);
    recipe.set("reduce", reduce);
    recipe.set("loss_scale_initial", "256");
    return std::make_unique<Trainer>(model(), recipe, nullptr);
  }
  /// Makes micro-batch `row` contribute value * (-2 target / 8) to one element of one tensor's gradient.
  void put(size_t tensor, int64_t row, float value, float target) {
    x[tensor][static_cast<size_t>(row * kWidths[tensor] + element(tensor))] = value;
    y[static_cast<size_t>(row)] = target;
  }
  static int64_t element(size_t tensor) { return kWidths[tensor] - 2; }
  std::vector<HostView> batch() {
    std::vector<HostView> views;
    for (size_t i = 0; i < x.size(); ++i) views.push_back(plain_view(kInputs[i], DType::f32, {kRows, kWidths[i]}, x[i].data()));
    views.push_back(plain_view("y", DType::f32, {kRows, 1}, y.data()));
    return views;
  }
  std::vector<std::vector<float>> x;
  std::vector<float> y;
};

/// A step that must be skipped, then one that must not.
Outcome skips_once(Trainer& trainer, Sum bad, const std::string& what) {
  const std::string before = trainer.state_digest();
  EXPECT_TRUE(trainer.step(bad.batch()).skipped) << what;
  EXPECT_EQ(trainer.state_digest(), before) << what;
  Outcome outcome;
  add(outcome, trainer.step(Sum().batch()));
  EXPECT_EQ(outcome.skipped, 0) << what;
  EXPECT_NE(trainer.state_digest(), before) << what;
  outcome.state = text(trainer.state_digest(), trainer.training_state().json());  // attempts, updates, items
  return outcome;
}

constexpr float kMost = 3e38F;

TEST(SkippedOnRanks, IsAStepWhereOneElementOfOneTensorOfOneMicroBatchIsInfinite) {
  const auto bad = [](size_t tensor, int64_t row) {
    Sum sum;
    sum.put(tensor, row, kMost, -100);
    return sum;
  };
  for (const char* precision : {"\"fp32\"", "\"bf16\"", "\"fp16\""}) {
    const auto alone = Sum::trainer(1, 0, precision);
    const Outcome expected = skips_once(*alone, bad(0, 0), "alone");
    for (const int64_t zero : {0, 1, 2, 3})
      for (size_t tensor = 0; tensor < Sum::kWidths.size(); ++tensor)
        for (int64_t row = 0; row < Sum::kRows; ++row) {
          if (kSanitized && (zero + static_cast<int64_t>(tensor) + row) % 4 != 0) continue;
          const auto trainer = Sum::trainer(3, zero, precision);
          EXPECT_EQ(skips_once(*trainer, bad(tensor, row), text("w", tensor, ", micro-batch ", row)), expected)
              << precision << ", zero " << zero << ", w" << tensor << ", micro-batch " << row;
        }
  }
}

// Checks that the tests here make exactly one element not finite.
TEST(SkippedOnRanks, HasOneElementThatIsNotFinite) {
  Sum sum;
  sum.put(1, 3, kMost, -100);
  const auto trainer = Sum::trainer(3, 2, "\"fp32\"");
  trainer->step(sum.batch());
  for (size_t tensor = 0; tensor < Sum::kWidths.size(); ++tensor) {
    std::vector<float> gradient(static_cast<size_t>(Sum::kWidths[tensor]));
    trainer->gradient(text("w", tensor), plain_view("", DType::f32, {Sum::kWidths[tensor], 1}, gradient.data()));
    for (size_t i = 0; i < gradient.size(); ++i)
      EXPECT_EQ(std::isfinite(gradient[i]), tensor != 1 || static_cast<int64_t>(i) != Sum::element(1)) << tensor << ", " << i;
  }
}

// T12: the gradients of all micro-batches are finite, or none is NaN, but their sum is not.
TEST(SkippedOnRanks, IsAStepWhoseSumOverRanksIsInfiniteOrNoNumber) {
  Sum overflows, cancels;
  for (int64_t row = 0; row < Sum::kRows; ++row) overflows.put(0, row, kMost, -1);  // 5 times 7.5e37
  cancels.put(0, 1, kMost, -100);
  cancels.put(0, 2, kMost, 100);
  for (const auto& [what, bad] : {std::pair<std::string, Sum>{"overflows", overflows}, {"cancels", cancels}}) {
    const Outcome expected = skips_once(*Sum::trainer(1, 0, "\"fp32\""), bad, what);
    for (const int64_t ranks : {2, 3, 5})
      for (const int64_t zero : {0, 1, 2, 3}) {
        if (kSanitized && (ranks + zero) % 3 != 0) continue;
        EXPECT_EQ(skips_once(*Sum::trainer(ranks, zero, "\"fp32\""), bad, what), expected) << ranks << " ranks, zero " << zero;
        skips_once(*Sum::trainer(ranks, zero, "\"fp32\"", "\"step\""), bad, what);  // after which the next step has other bits
      }
  }
}

}  // namespace
}  // namespace st

#include "parts/accumulator.h"

#include <cmath>
#include <functional>

#include "gradient_arrays.h"
#include "refusal.h"

namespace st {
namespace {

/// Runs in the library's floating-point mode.
class AccumulatorTest : public testing::Test {
 protected:
  Accumulator of(int64_t steps, const std::vector<GradientArray>& gradients, int threads = 2) const {
    return Accumulator(steps, gradients, std::make_unique<Workers>(threads), memory_);
  }
  const FloatMode mode_;
  const std::shared_ptr<MemorySource> memory_ = std::make_shared<MemorySource>();
};

// Gradients of loss sums over 3, 3 and 2 tokens give the mean over 8, not the mean of three means.
TEST_F(AccumulatorTest, MakesTheMeanOverAllTokensOfRaggedMicroBatches) {
  std::vector<float> g(2);
  Accumulator a = of(3, {array(DType::f32, g)});
  for (int round = 0; round < 3; ++round) {  // a step leaves no state to the next
    const std::vector<std::vector<float>> pieces = {{3, -6}, {9, 1}, {4, 21}};
    for (size_t k = 0; k < 3; ++k) {
      g = pieces[k];
      a.add(k == 2 ? 2 : 3);
      EXPECT_EQ(a.should_step(), k == 2);
      if (k < 2) {
        EXPECT_EQ(g, pieces[k]) << "written before the boundary";
      }
    }
    EXPECT_EQ(a.weight(), 8);
    EXPECT_EQ(g, (std::vector<float>{2, 2}));
  }
}

TEST_F(AccumulatorTest, OfOneMicroBatchIsItsMean) {
  std::vector<float> g = {6, -9};
  Accumulator a = of(1, {array(DType::f32, g)});
  a.add(3);
  EXPECT_TRUE(a.should_step());
  const float third = static_cast<float>(1.0 / 3);
  EXPECT_EQ(g, (std::vector<float>{6 * third, -9 * third}));
}

// -0 + 0 is 0: adding the first micro-batch to zeros would lose the sign.
TEST_F(AccumulatorTest, TheFirstWritesInsteadOfZeroing) {
  std::vector<float> g = {-0.0F};
  Accumulator a = of(2, {array(DType::f32, g)});
  a.add(1);
  g[0] = -0.0F;
  a.add(1);
  EXPECT_TRUE(std::signbit(g[0]));
}

// Also if it is first, last, or all but one; with any content of the arrays, as if backward never ran.
TEST_F(AccumulatorTest, AnEmptyMicroBatchAddsNothing) {
  for (int full = 0; full < 4; ++full) {
    std::vector<float> g(1);
    std::vector<double> wide(1);
    Accumulator a = of(4, {array(DType::f32, g), array(DType::f64, wide)});
    for (int k = 0; k < 4; ++k) {
      g[0] = k == full ? 10 : std::nanf("");
      wide[0] = g[0];
      a.add(k == full ? 5 : 0);
    }
    EXPECT_TRUE(a.should_step());
    EXPECT_EQ(g[0], 10 * 0.2F) << full;
    EXPECT_EQ(wide[0], 10 * 0.2) << full;
  }
}

TEST_F(AccumulatorTest, NothingToAverageIsRefusedAndForgetsNothing) {
  std::vector<float> g = {4};
  Accumulator a = of(2, {array(DType::f32, g)});
  a.add(0);
  EXPECT_TRUE(refuses(Code::invalid_argument, {"the step has no tokens", "reset"}, [&] { a.add(0); }));
  a.add(2);
  EXPECT_TRUE(a.should_step());
  EXPECT_EQ(g[0], 2);
  a.set_steps(1);
  g[0] = 9;
  a.add(3);
  EXPECT_TRUE(a.should_step());
  EXPECT_TRUE(refuses(Code::invalid_argument, {"the step has no tokens"}, [&] { a.add(0); }));
  EXPECT_TRUE(a.should_step());
  EXPECT_EQ(a.weight(), 3) << "the last step is as it was";
}

// 1 + 1000 times 2^-12: bf16, with 8 bits, would never change 1.
TEST_F(AccumulatorTest, SumsHalvesInFp32AndRoundsOnce) {
  constexpr int64_t kSteps = 1001;
  std::vector<uint16_t> bf16(1), f16(1);
  Accumulator a = of(kSteps, {array(DType::bf16, bf16), array(DType::f16, f16)});
  for (int64_t k = 0; k < kSteps; ++k) {
    const float value = k == 0 ? 1 : 0x1p-12F;
    bf16[0] = bf16_of(value), f16[0] = f16_of(value);
    a.add(1.0 / kSteps);  // the weights sum to 1 up to rounding
  }
  const float sum = 1 + 1000 * 0x1p-12F;  // exact
  EXPECT_NEAR(a.weight(), 1, 1e-12);
  EXPECT_EQ(bf16[0], bf16_of(sum));
  EXPECT_EQ(f16[0], f16_of(sum));
}

TEST_F(AccumulatorTest, LeavesInfAndNanForTheFiniteCheck) {
  std::vector<float> g(3);
  std::vector<uint16_t> f16(1);
  Accumulator a = of(2, {array(DType::f32, g), array(DType::f16, f16)});
  g = {kInf, kInf, std::nanf("")};
  f16[0] = f16_of(60000);
  a.add(0.5);
  g = {1, -kInf, 1};
  a.add(0.5);
  EXPECT_EQ(g[0], kInf);
  EXPECT_TRUE(std::isnan(g[1])) << "inf - inf";
  EXPECT_TRUE(std::isnan(g[2]));
  EXPECT_EQ(f16[0], 0x7C00) << "120000 is beyond f16, though not beyond the sum";
}

// Compared by bits: in this mode a denormal equals 0.
TEST_F(AccumulatorTest, DenormalsCountInF16Alone) {
  constexpr uint16_t kOneF16 = 0x3C00, kDenormalF16 = 0x0200;  // 2^-15
  for (const int64_t steps : {1, 2}) {
    std::vector<uint32_t> f32 = {0x00400000, 0x80000001};
    std::vector<uint16_t> bf16 = {0x0040, 0x8001}, f16 = {kDenormalF16, kOneF16};
    Accumulator a = of(steps, {array(DType::f32, f32), array(DType::bf16, bf16), array(DType::f16, f16)});
    for (int64_t k = 0; k < steps; ++k) a.add(1);
    EXPECT_EQ(f32, (std::vector<uint32_t>{0, 0x80000000})) << steps;
    EXPECT_EQ(bf16, (std::vector<uint16_t>{0, 0x8000})) << steps;
    EXPECT_EQ(f16, (std::vector<uint16_t>{kDenormalF16, kOneF16})) << steps;
  }
}

// Also a scalar and an empty array; elements in gaps must not change.
TEST_F(AccumulatorTest, TakesArraysOfAnyStridesAndTouchesNothingBetween) {
  std::vector<StridedCase> cases = kStridedCases;
  cases.push_back({{}, {}});
  cases.push_back({{0, 4}, {4, 1}});
  for (const StridedCase& c : cases) {
    std::vector<float> f32(64, 8);
    std::vector<uint16_t> f16(64, f16_of(8));
    std::vector<double> f64(64, 8);
    std::vector<float> want = f32;
    const auto each = [&](const std::function<void(size_t at, int64_t i)>& visit) {
      for (int64_t i = 0; i < c.shape.elements(); ++i) {
        int64_t at = 0, rest = i;
        for (int32_t d = c.shape.rank() - 1; d >= 0; rest /= c.shape[d--]) at += rest % c.shape[d] * c.strides[static_cast<size_t>(d)];
        visit(static_cast<size_t>(at), i);
      }
    };
    Accumulator a = of(2, {{.dtype = DType::f32, .shape = c.shape, .strides = c.strides, .data = f32.data()},
                           {.dtype = DType::f16, .shape = c.shape, .strides = c.strides, .data = f16.data()},
                           {.dtype = DType::f64, .shape = c.shape, .strides = c.strides, .data = f64.data()}});
    for (const int k : {1, 3}) {
      each([&](size_t at, int64_t i) {
        const auto value = static_cast<float>(i * k);
        f32[at] = value, f64[at] = value, f16[at] = f16_of(value);
        want[at] = static_cast<float>(i) / 2;  // (i + 3 i) / 8
      });
      a.add(k == 1 ? 5 : 3);
    }
    for (size_t at = 0; at < want.size(); ++at) {
      ASSERT_EQ(f32[at], want[at]) << text(c.shape) << " at " << at;
      ASSERT_EQ(f64[at], want[at]) << text(c.shape) << " at " << at;
      ASSERT_EQ(f32_of_f16(f16[at]), want[at]) << text(c.shape) << " at " << at;
    }
  }
}

TEST_F(AccumulatorTest, BeyondTheBoundaryIsRefusedUntilItWasTold) {
  std::vector<float> g = {1};
  Accumulator a = of(2, {array(DType::f32, g)});
  a.add(1);
  a.add(1);
  g[0] = 5;  // a backward that came too early
  EXPECT_TRUE(refuses(Code::wrong_state, {"all 2 micro-batches", "should_step"}, [&] { a.add(1); }));
  EXPECT_EQ(g[0], 5);
  EXPECT_TRUE(a.should_step());
  EXPECT_TRUE(a.should_step()) << "asked twice";
  a.add(1);
  EXPECT_FALSE(a.should_step());
  EXPECT_EQ(a.weight(), 1);
}

TEST_F(AccumulatorTest, ResetForgetsAPartialStep) {
  std::vector<float> g = {kInf};
  Accumulator a = of(2, {array(DType::f32, g)});
  a.add(7);
  a.reset();
  EXPECT_EQ(a.weight(), 0);
  EXPECT_EQ(g[0], kInf) << "the arrays stay as they are";
  for (const float value : {2.0F, 4.0F}) g[0] = value, a.add(1);
  EXPECT_TRUE(a.should_step());
  EXPECT_EQ(g[0], 3);
}

TEST_F(AccumulatorTest, StepsChangeBetweenTwoStepsOnly) {
  std::vector<float> g = {1};
  Accumulator a = of(3, {array(DType::f32, g)});
  a.set_steps(2);
  a.add(1);
  EXPECT_TRUE(refuses(Code::wrong_state, {"1 of 2", "reset"}, [&] { a.set_steps(1); }));
  a.add(1);
  EXPECT_TRUE(refuses(Code::wrong_state, {"2 of 2", "should_step"}, [&] { a.set_steps(1); }));
  EXPECT_TRUE(a.should_step());
  a.set_steps(1);
  EXPECT_FALSE(a.should_step());
  a.add(1);
  EXPECT_TRUE(a.should_step());
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, Accumulator::kMaxSteps + 1})
    EXPECT_TRUE(refuses(Code::invalid_argument, {"steps is " + std::to_string(bad), "1 to 1048576"}, [&] { a.set_steps(bad); }));
  EXPECT_TRUE(a.should_step()) << "nothing has changed";
}

TEST_F(AccumulatorTest, BadWeightsAreNamedAndChangeNothing) {
  std::vector<float> g = {1};
  Accumulator a = of(1, {array(DType::f32, g)});
  for (const double bad : {-1.0, -0x1p-60, 0x1p-54, 0x1p54, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_TRUE(refuses(Code::invalid_argument, {text("weight is ", bad), "number of tokens"}, [&] { a.add(bad); }));
  EXPECT_EQ(g[0], 1);
  EXPECT_EQ(a.weight(), 0);
  a.add(Accumulator::kMinWeight);
  EXPECT_EQ(g[0], 0x1p53F);
  EXPECT_TRUE(a.should_step());
  a.add(Accumulator::kMaxWeight);
  EXPECT_EQ(g[0], 1);
}

TEST_F(AccumulatorTest, RefusesWhatIsNoGradient) {
  std::vector<int32_t> whole = {1};
  std::vector<float> g = {1};
  EXPECT_TRUE(refuses(Code::invalid_argument, {"gradient 1 must be f32, f64", "got i32"}, [&] {
    of(1, {array(DType::f32, g), array(DType::i32, whole)});
  }));
  EXPECT_TRUE(refuses(Code::invalid_argument, {"at least one gradient"}, [&] { of(1, {}); }));
  EXPECT_TRUE(refuses(Code::invalid_argument, {"steps is 0"}, [&] { of(0, {array(DType::f32, g)}); }));
}

TEST_F(AccumulatorTest, TakesMemoryForItsSumsOnly) {
  std::vector<float> f32(100);
  std::vector<uint16_t> bf16(100);
  std::vector<double> f64(100);
  const Accumulator a = of(4, {array(DType::f32, f32), array(DType::bf16, bf16), array(DType::f64, f64)});
  EXPECT_EQ(memory_->account().bytes(), 448 + 448 + 832) << "400, 400 and 800 bytes, each from a multiple of 64 on";
}

}  // namespace
}  // namespace st

#include <gtest/gtest.h>

#include <cmath>

#include "backend/moment_codes.h"
#include "conformance.h"
#include "ir/optimizer_state.h"

namespace st::conformance {
namespace {

constexpr int64_t kElements = 4 * 16384 + 77;  // several tasks, and a partial block

OpCase one_step(Suite& s, const Shape& shape, double number) {
  OpCase c{.op = Op::adamw_8bit, .name = "step", .in = {}, .slots = {}, .attrs = make_attrs(Op::adamw_8bit, {})};
  c.in = {s.normal(shape, 0.1), Tensor::scalar(1, DType::f32), Tensor::scalar(0, DType::boolean),
          Tensor::of({2}, {1e-3, number}, DType::f64)};
  c.slots = {s.normal(shape)};
  for (const OptimizerState& state : optimizer_state(c.op, c.attrs, {.dtype = DType::f32, .shape = shape, .layout = {}}))
    c.slots.emplace_back(state.type.dtype, state.type.shape);
  return c;
}

// Gradients of one magnitude: no moment is near the edge of a bin, where rounding could go either way.
const Cases adamw_8bit_cases(Op::adamw_8bit, {.each = 4, .largest = 1}, [](Suite& s) {
  for (const Shape& shape : {Shape{1}, Shape{300}, Shape{3, 1000}})
    for (const bool skip : {false, true}) {
      Tensor gradient(DType::f32, shape);
      for (int64_t i = 0; i < gradient.elements(); ++i) gradient.set(i, i % 3 == 0 ? -1 : 1);
      OpCase& c =
          s.add({gradient, Tensor::scalar(0.25, DType::f32), Tensor::scalar(skip, DType::boolean), Tensor::of({2}, {1e-3, 1}, DType::f64)});
      c.slots = {s.normal(shape)};
      for (const OptimizerState& state : optimizer_state(Op::adamw_8bit, {}, {.dtype = DType::f32, .shape = shape, .layout = {}}))
        c.slots.emplace_back(state.type.dtype, state.type.shape);
      c.dtypes = {DType::f32, DType::bf16, DType::f16};
      c.statistics = {1};
    }
});

TEST(MomentCodes, StandForRisingValuesAndAreTheirOwn) {
  for (int code = 1; code < 256; ++code) {
    const auto i = static_cast<size_t>(code);
    EXPECT_LT(moment_codes::kUnsigned[i - 1], moment_codes::kUnsigned[i]);
    EXPECT_LT(moment_codes::kSigned[i - 1], moment_codes::kSigned[i]);
    EXPECT_EQ(moment_codes::encode_unsigned(moment_codes::kUnsigned[i]), code);
    EXPECT_EQ(moment_codes::encode_signed(moment_codes::kSigned[i]), code);
  }
  EXPECT_EQ(moment_codes::encode_unsigned(0), 0);
  EXPECT_EQ(moment_codes::kSigned[moment_codes::encode_signed(0)], 0);
  EXPECT_EQ(moment_codes::kUnsigned[255], 1);
  EXPECT_EQ(moment_codes::kSigned[255], 1);
}

// A bin of the top decade has the width 0.9 / 128 (signed: 0.9 / 64), one of decade d 2^(6 - d) times that, relative to a top 10^(6 - d)
// times smaller.
TEST(MomentCodes, AreWithinHalfABin) {
  for (int decade = 0; decade < 7; ++decade) {
    const double top = std::pow(10.0, decade - 6);
    for (int i = 1; i < 1000; ++i) {  // the top of a decade may fall into the next one
      const double x = top * (0.1 + 0.9 * i / 1000);
      const double bin = top * 0.9 / (1 << decade);
      const auto stored = [](const auto& values, uint8_t code) { return static_cast<double>(values[code]); };
      const auto a = static_cast<float>(x);
      EXPECT_NEAR(stored(moment_codes::kUnsigned, moment_codes::encode_unsigned(a)), x, 0.2501 * bin + 1e-7 * x) << x;
      EXPECT_NEAR(stored(moment_codes::kSigned, moment_codes::encode_signed(a)), x, 0.5001 * bin + 1e-7 * x) << x;
      EXPECT_NEAR(stored(moment_codes::kSigned, moment_codes::encode_signed(-a)), -x, 0.5001 * bin + 1e-7 * x) << x;
    }
  }
}

TEST(MomentCodes, KeepEverySecondMomentAboveZero) { EXPECT_GT(moment_codes::kUnsigned[moment_codes::encode_unsigned(1e-30F)], 0); }

// Vectors of a kernel class give the codes that one element at a time has: at both sides of every edge of a bin, and far from them. Without
// decay of the moments these are the gradient and its square.
TEST(AdamW8bit, CodesAreThoseOfOneElementAtEveryEdge) {
  std::vector<float> magnitudes = {0, 1e-38F, 1e-8F, 0.99F};
  const auto add_neighbours = [&](double x) {
    auto near = static_cast<float>(x);
    for (int i = 0; i < 4; ++i) near = std::nextafter(near, 0.0F);
    for (int i = 0; i < 9; ++i, near = std::nextafter(near, 2.0F)) magnitudes.push_back(std::min(near, 1.0F));
  };
  for (double top = 1e-6, bins = 1; top < 2; top *= 10, bins *= 2)
    for (int bin = 0; bin <= 2 * static_cast<int>(bins); ++bin) {  // the unsigned map has twice as many
      const double edge = top * (0.1 + 0.9 * bin / (2 * bins));
      add_neighbours(edge);
      add_neighbours(std::sqrt(edge));
    }
  const auto elements = static_cast<int64_t>(magnitudes.size()) / 255 * 256 + 256;
  for (const BackendUnderTest& candidate : backends()) {
    std::vector<OpCase> list;
    Suite s(Op::adamw_8bit, {}, list);
    OpCase c = one_step(s, {elements}, 1);
    c.attrs = make_attrs(Op::adamw_8bit, {{"beta1", 0.0}, {"beta2", 0.0}});
    size_t next = 0;
    for (int64_t i = 0; i < elements; ++i)  // each block's largest is 1
      c.in[0].set(i, i % 256 == 0 || next >= magnitudes.size() ? 1 : static_cast<double>(magnitudes[next++]) * (i % 2 == 0 ? 1 : -1));
    const auto backend = candidate.make();
    const std::vector<Tensor> slots = run(*backend, c).slots;
    for (int64_t i = 0; i < elements; ++i) {
      const auto g = static_cast<float>(c.in[0].at(i));
      ASSERT_EQ(slots[1].at(i), moment_codes::encode_signed(g)) << candidate.name << ", " << g;
      ASSERT_EQ(slots[3].at(i), moment_codes::encode_unsigned(g * g)) << candidate.name << ", " << g;
    }
  }
}

// The parameter is updated with the computed moments: only those of the previous step are coarse.
TEST(AdamW8bit, ItsFirstStepIsAdamWs) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    std::vector<OpCase> list;
    Suite s(Op::adamw_8bit, {}, list);
    const OpCase c = one_step(s, {kElements}, 1);
    OpCase full = c;
    full.op = Op::adamw;
    full.attrs = make_attrs(Op::adamw, {});
    full.slots = {c.slots[0], Tensor(DType::f32, {kElements}), Tensor(DType::f32, {kElements})};
    const auto backend = candidate.make();
    EXPECT_EQ(run(*backend, c).slots[0], run(*backend, full).slots[0]) << candidate.name;
  }
}

// A code may fall on either side of a bin's edge, since the moments are computed in fp32 here and in fp64 in the reference.
TEST(AdamW8bit, FollowsTheReferenceOverTwentySteps) {
  for (const BackendUnderTest& candidate : backends()) {
    std::vector<OpCase> list;
    Suite s(Op::adamw_8bit, {}, list);
    const auto backend = candidate.make(), reference = make_reference();
    OpCase ours = one_step(s, {3, 1500}, 1), theirs = ours;
    const Tensor first = ours.slots[0];
    for (int step = 1; step <= 20; ++step) {
      const OpCase next = one_step(s, {3, 1500}, step);
      ours.in = theirs.in = next.in;
      ours.slots = run(*backend, ours).slots;
      theirs.slots = run(*reference, theirs).slots;
    }
    double largest = 0, squares = 0;
    for (int64_t i = 0; i < first.elements(); ++i) {
      largest = std::max(largest, std::abs(theirs.slots[0].at(i) - first.at(i)));
      squares += std::pow(theirs.slots[0].at(i) - ours.slots[0].at(i), 2);
    }
    EXPECT_LT(std::sqrt(squares / static_cast<double>(first.elements())), 1e-3 * largest) << candidate.name;
  }
}

// One element's squared gradient is beyond 2^126 or beyond fp32's range; afterwards all are small again.
TEST(AdamW8bit, ABlockWithAHugeSecondMomentKeepsItsWeights) {
  for (const double huge : {1e20, 3e20, 1e21, 3e38})
    for (const BackendUnderTest& candidate : backends_and_reference()) {
      std::vector<OpCase> list;
      Suite s(Op::adamw_8bit, {}, list);
      const auto backend = candidate.make();
      OpCase c = one_step(s, {512}, 1);
      for (int64_t i = 0; i < 512; ++i) c.slots[0].set(i, 1);
      for (int step = 1; step <= 3; ++step) {
        for (int64_t i = 0; i < 512; ++i) c.in[0].set(i, i == 5 && step == 1 ? huge : 1e-3);
        c.in[3] = Tensor::of({2}, {1e-3, static_cast<double>(step)}, DType::f64);
        c.slots = run(*backend, c).slots;
      }
      for (int64_t i = 0; i < 512; ++i) EXPECT_NEAR(c.slots[0].at(i), 1, 0.01) << candidate.name << ", " << huge << ", element " << i;
    }
}

TEST(AdamW8bit, TakesLittleMoreThanTwoBytesAParameter) {
  int64_t bytes = 0;
  for (const OptimizerState& state : optimizer_state(Op::adamw_8bit, {}, {.dtype = DType::f32, .shape = {768, 3072}, .layout = {}}))
    bytes += state.type.bytes();
  EXPECT_LE(static_cast<double>(bytes) / (768 * 3072), 2.04);
}

}  // namespace
}  // namespace st::conformance

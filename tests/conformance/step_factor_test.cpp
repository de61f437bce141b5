#include <limits>

#include "comparison.h"
#include "conformance.h"

namespace st::conformance {
namespace {

std::vector<Tensor> operands(double norm, bool finite, double count) {
  return {Tensor::scalar(norm, DType::f64), Tensor::scalar(finite, DType::boolean), Tensor::scalar(count, DType::f64)};
}

// fp64, rounded to fp32 once: the same bits everywhere.
const Cases step_factor_cases(Op::step_factor, {}, [](Suite& s) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double seed : {1.0, 64.0, 0x1p-7})
    for (const double max_norm : {0.0, 1.0, 0.3}) {
      const Attrs attrs = {{"seed", seed}, {"max_norm", max_norm}};
      for (const double norm : {0.0, 1e-20, 0.5, 77.0, 1e20}) s.add(operands(norm, true, 48), attrs);
      s.add(operands(inf, false, 48), attrs);
      s.add(operands(nan, false, 48), attrs);
      s.add(operands(3, true, 0), attrs);
    }
});

Result factor(Backend& backend, double norm, bool finite, double count, double seed, double max_norm) {
  return run(
      backend,
      {.op = Op::step_factor, .name = "factor", .in = operands(norm, finite, count), .attrs = {{"seed", seed}, {"max_norm", max_norm}}});
}

TEST(StepFactor, UnscalesAndClipsByTheTrueNorm) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    // Seeded with 64 per unit of loss, 10 tokens: a stored norm of 6400 is a true norm of 10, clipped to 1.
    const auto clipped = factor(*backend, 6400, true, 10, 64, 1).out;
    EXPECT_EQ(clipped[0].at(0), static_cast<double>(static_cast<float>(1 / (10 + 1e-6) / 640))) << candidate.name;
    EXPECT_EQ(clipped[1].at(0), 10) << candidate.name;
    EXPECT_EQ(clipped[2].at(0), 0) << candidate.name;
    const auto whole = factor(*backend, 320, true, 10, 64, 1).out;
    EXPECT_EQ(whole[0].at(0), static_cast<double>(static_cast<float>(1.0 / 640))) << candidate.name;
    EXPECT_EQ(whole[1].at(0), 0.5) << candidate.name;
    EXPECT_EQ(factor(*backend, 6400, true, 10, 64, 0).out[0].at(0), static_cast<double>(static_cast<float>(1.0 / 640))) << candidate.name;
  }
}

// A norm of 1e40 is finite in fp64, but clipping by it would make every gradient 0.
TEST(StepFactor, SkipsAStepWhoseFactorIsNoNormalNumber) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    EXPECT_EQ(factor(*backend, 1e40, true, 1, 1, 1).out[2].at(0), 1) << candidate.name;
    EXPECT_EQ(factor(*backend, 1e37, true, 1, 1, 1).out[2].at(0), 0) << candidate.name;
    EXPECT_EQ(factor(*backend, 1e40, true, 1, 1, 0).out[2].at(0), 0) << candidate.name;
    EXPECT_EQ(factor(*backend, 1, true, 1e-40, 1, 0).out[2].at(0), 1) << candidate.name;
  }
}

TEST(StepFactor, SkipsAStepWithoutTokensOrWithInfinities) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    EXPECT_EQ(factor(*backend, 1, true, 0, 1, 1).out[2].at(0), 1) << candidate.name;
    EXPECT_EQ(factor(*backend, 1, false, 3, 1, 0).out[2].at(0), 1) << candidate.name;
    EXPECT_EQ(factor(*backend, std::numeric_limits<double>::infinity(), false, 5, 1, 1).out[2].at(0), 1) << candidate.name;
    EXPECT_EQ(factor(*backend, 1, true, 5, 1, 1).out[2].at(0), 0) << candidate.name;
  }
}

}  // namespace
}  // namespace st::conformance

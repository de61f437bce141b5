#include <gtest/gtest.h>

#include <cmath>

#include "reference_run.h"

namespace st {
namespace {

struct Factor {
  float factor;
  double norm;
  bool skip;
};

Factor factor_of(double norm, bool finite, double count, double seed, double max_norm) {
  Array is_finite(DType::boolean, {});
  is_finite.as<bool>()[0] = finite;
  const std::vector<Array> out = run(Op::step_factor, {Array::of<double>({}, {norm}), is_finite, Array::of<double>({}, {count})},
                                     {{"seed", seed}, {"max_norm", max_norm}});
  return {out[0].as<float>()[0], out[1].as<double>()[0], out[2].as<bool>()[0]};
}

TEST(ReferenceStepFactor, UndoesTheSeedAndTheCount) {
  const Factor factor = factor_of(600, true, 3, 100, 0);
  EXPECT_EQ(factor.factor, static_cast<float>(1.0 / 300));
  EXPECT_EQ(factor.norm, 2);
  EXPECT_FALSE(factor.skip);
}

TEST(ReferenceStepFactor, ClipsTheTrueNormOnly) {
  EXPECT_EQ(factor_of(600, true, 3, 100, 0.5).factor, static_cast<float>(0.5 / (2 + 1e-6) / 300));
  EXPECT_EQ(factor_of(600, true, 3, 100, 2.5).factor, static_cast<float>(1.0 / 300));  // 2 is within the bound, 600 is not
}

TEST(ReferenceStepFactor, SkipsWhatIsNotFiniteOrCountsNothing) {
  EXPECT_TRUE(factor_of(1, false, 3, 1, 0).skip);
  EXPECT_TRUE(factor_of(0, true, 0, 1, 0).skip);
}

}  // namespace
}  // namespace st

#include <cmath>

#include "conformance.h"

namespace st::conformance {
namespace {

Tensor counters(int64_t attempt, int64_t first_sample) {
  return Tensor::of({2}, {static_cast<double>(attempt), static_cast<double>(first_sample)}, DType::i64);
}

/// A sample is a slice along the first dimension.
int64_t sample_elements(const Shape& shape) { return shape.rank() < 2 || shape.elements() == 0 ? 1 : shape.elements(1, shape.rank()); }

// The mask is the same everywhere; 1 / (1 - rate) may be rounded to fp32 first.
const Cases dropout_cases(Op::dropout, {.each = 2}, [](Suite& s) {
  for (const double rate : {0.0, 0.1, 0.5, 0.9}) {
    const auto attrs = [&](const Shape& shape) {
      return Attrs{{"rate", rate}, {"site", int64_t{3}}, {"seed", int64_t{11}}, {"sample_elements", sample_elements(shape)}};
    };
    for (const Shape& shape : shapes()) s.add({s.normal(shape), counters(5, 0)}, attrs(shape));
    s.add({s.normal({4, 7, 9}), counters(5, 40)}, attrs({4, 7, 9}));
  }
  s.add({s.normal({3, 37}), counters(1, 2)}, {{"rate", 0.5}, {"sample_elements", int64_t{37}}});
  s.add({s.normal({12, 37}), counters(1, 2)}, {{"rate", 0.5}, {"sample_elements", int64_t{111}}});
  for (const int64_t first : {1, 74, 222})  // a piece of a larger value
    s.add({s.normal({4, 37}), counters(1, 2)}, {{"rate", 0.5}, {"sample_elements", int64_t{111}}, {"first", first}});
});

class Dropout : public ::testing::TestWithParam<BackendUnderTest> {
 protected:
  Tensor mask(const Shape& shape, int64_t attempt, int64_t first_sample, int64_t site = 3, double rate = 0.25) {
    return mask(shape, attempt, first_sample, site, rate, sample_elements(shape));
  }
  Tensor mask(const Shape& shape, int64_t attempt, int64_t first_sample, int64_t site, double rate, int64_t per_sample, int64_t begin = 0) {
    Tensor ones(DType::f32, shape);
    for (int64_t i = 0; i < ones.elements(); ++i) ones.set(i, 1);
    const OpCase c{.op = Op::dropout,
                   .name = "mask",
                   .in = {ones, counters(attempt, first_sample)},
                   .attrs = {{"rate", rate}, {"site", site}, {"seed", int64_t{11}}, {"sample_elements", per_sample}, {"first", begin}}};
    return run(*backend_, c).out[0];
  }

 private:
  std::unique_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(Dropout, KeepsItsShareAndScalesIt) {
  constexpr double kAllElements = 200'000;
  for (const double rate : {0.1, 0.25, 0.5, 0.9}) {
    const Tensor y = mask({200, 1000}, 1, 0, 3, rate);
    int64_t kept = 0;
    for (int64_t i = 0; i < y.elements(); ++i) {
      if (y.at(i) == 0) continue;
      ++kept;
      ASSERT_NEAR(y.at(i), 1 / (1 - rate), 0x1p-22 / (1 - rate));
    }
    EXPECT_NEAR(static_cast<double>(kept), kAllElements * (1 - rate), 5 * std::sqrt(kAllElements * rate * (1 - rate))) << "five deviations";
  }
  const Tensor all = mask({100}, 1, 0, 3, 0);
  for (int64_t i = 0; i < all.elements(); ++i) EXPECT_EQ(all.at(i), 1);
}

TEST_P(Dropout, GivesASampleTheSameMaskInAnyMicroBatch) {
  for (const Shape& sample : {Shape{37}, Shape{7, 11}}) {  // not multiples of a block's four words
    const auto of = [&](int64_t first, int64_t count) {
      Shape shape = {count};
      for (const int64_t dim : sample) shape.push_back(dim);
      return mask(shape, 9, first);
    };
    const Tensor whole = of(10, 6), begin = of(10, 2), end = of(12, 4);
    for (int64_t i = 0; i < whole.elements(); ++i)
      ASSERT_EQ(i < begin.elements() ? begin.at(i) : end.at(i - begin.elements()), whole.at(i)) << i;
  }
}

TEST_P(Dropout, TakesSlicesOfTheFirstDimensionAsSamplesByDefault) {
  for (const Shape& shape : {Shape{4, 3, 5}, Shape{7}, Shape{}, Shape{0, 3}, Shape{3, 0}}) {
    EXPECT_EQ(mask(shape, 1, 6, 3, 0.5, 0), mask(shape, 1, 6, 3, 0.5, sample_elements(shape))) << text(shape);
  }
}

TEST_P(Dropout, GivesAPieceTheMaskOfTheWhole) {
  constexpr int64_t kRows = 12, kColumns = 37;
  for (const int64_t per_sample : {kColumns, 3 * kColumns, 4 * kColumns}) {  // pieces that begin in a sample and in a block's four words
    const Tensor whole = mask({kRows, kColumns}, 9, 5, 3, 0.25, per_sample);
    for (const int64_t ranks : {1, 2, 3, 4})
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const int64_t begin = rank * whole.elements() / ranks;
        const Tensor piece = mask({kRows / ranks, kColumns}, 9, 5, 3, 0.25, per_sample, begin);
        for (int64_t i = 0; i < piece.elements(); ++i)
          ASSERT_EQ(piece.at(i), whole.at(begin + i)) << per_sample << ", " << rank << " of " << ranks << ", element " << i;
      }
  }
}

TEST_P(Dropout, DrawsAnotherMaskForEachStepAndSite) {
  const Tensor first = mask({4, 129}, 1, 0);
  EXPECT_NE(mask({4, 129}, 2, 0), first);
  EXPECT_NE(mask({4, 129}, 1, 0, 4), first);
  EXPECT_NE(mask({4, 129}, 1, 4), first);
  EXPECT_NE(mask({4, 129}, 1, int64_t{1} << 32), first);
  EXPECT_EQ(mask({4, 129}, 1, 0), first);
}

INSTANTIATE_TEST_SUITE_P(All, Dropout, ::testing::ValuesIn(backends_and_reference()), [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace st::conformance

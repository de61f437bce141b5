#include <cmath>
#include <limits>

#include "comparison.h"
#include "conformance.h"

namespace st::conformance {
namespace {

// The order of the fp64 sums is fixed (traps.md, order of sums 4): the same bits everywhere.
const Cases gradient_norm_cases(Op::gradient_norm, {}, [](Suite& s) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const Shape& shape : shapes()) s.add({s.normal(shape)});
  for (const int64_t n : {1023, 1024, 1025, 3 * 1024, 5 * 1024 + 1, 100'000}) s.add({s.normal({n})});
  s.add({s.normal({3}), s.normal({1025}), s.normal({37, 29}), s.normal({0}), s.normal({1})});
  s.add({s.normal({99}, 1e-25)}).dtypes = {DType::f32};
  s.add({s.normal({99}, 1e25)}).dtypes = {DType::f32};
  s.add({s.normal({2000}), Tensor::of({2}, {1, nan})});
  s.add({Tensor::of({3}, {1, 2, -inf}), s.normal({2000})});
});

// The norm of n equal elements is known exactly; a plain fp32 sum would be far off.
TEST(GradientNorm, IsExactForEqualElements) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    Tensor threes(DType::f32, {1 << 20});
    for (int64_t i = 0; i < threes.elements(); ++i) threes.set(i, 3);
    const OpCase c{.op = Op::gradient_norm, .name = "threes", .in = {threes}};
    const auto out = run(*backend, c).out;
    EXPECT_EQ(out[0].at(0), 3 * 1024.0) << candidate.name;
    EXPECT_EQ(out[1].at(0), 1) << candidate.name;
  }
}

TEST(GradientNorm, FindsOneElementThatIsNotFinite) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    for (const double bad : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), std::nan("")})
      for (const int64_t at : {0, 1023, 1024, 4999}) {
        Tensor x(DType::f32, {5000});
        x.set(at, bad);
        const OpCase c{.op = Op::gradient_norm, .name = "bad", .in = {Tensor(DType::f32, {7}), x}};
        EXPECT_EQ(run(*backend, c).out[1].at(0), 0) << candidate.name << ", " << bad << " at " << at;
      }
  }
}

}  // namespace
}  // namespace st::conformance

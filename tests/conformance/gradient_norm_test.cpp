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

const Cases squares(Op::gradient_squares, {}, [](Suite& s) {
  for (const int64_t n : {1, 1023, 1024, 1025, 5 * 1024 + 1, 100'000}) s.add({s.normal({n})}).dtypes = {DType::f32};
  s.add({s.normal({3}), s.normal({1025}), s.normal({37, 29}), s.normal({0}), s.normal({1})}).dtypes = {DType::f32};
  s.add({s.normal({99}, 1e25)}).dtypes = {DType::f32};
});

const Cases norms(Op::norm_of_squares, {}, [](Suite& s) {
  const Tensor blocks = Tensor::of({7}, {1, 0.1, 3, 1e-9, 5, 0.7, 1e20}, DType::f64);
  s.add({blocks}, {{"tensors", Ints{0, 7}}});
  s.add({blocks}, {{"tensors", Ints{}}});
  s.add({blocks}, {{"tensors", Ints{0, 3, 3, 0, 3, 1, 5, 2}}});
  s.add_special({Tensor::of({3}, {1, std::numeric_limits<double>::infinity(), 2}, DType::f64)}, {{"tensors", Ints{0, 1, 1, 2}}});
  s.add_special({Tensor::of({3}, {1, std::numeric_limits<double>::infinity(), 2}, DType::f64)}, {{"tensors", Ints{0, 1, 2, 1}}});
});

// Of ranks that have pieces of the gradients, whole blocks of them, each gets the norm of all.
TEST(GradientNorm, OfThePiecesSquaresHasTheSameBits) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    Tensor x(DType::f32, {9000}), y(DType::f32, {100});
    for (int64_t i = 0; i < x.elements(); ++i) x.set(i, std::sin(static_cast<double>(i)) * std::exp(static_cast<double>(i % 31) - 15));
    for (int64_t i = 0; i < y.elements(); ++i) y.set(i, 0.1 * static_cast<double>(i));
    const auto piece = [&](int64_t begin, int64_t end) {
      Tensor part(DType::f32, {end - begin});
      for (int64_t i = begin; i < end; ++i) part.set(i - begin, x.at(i));
      return part;
    };
    const auto squares_of = [&](std::vector<Tensor> in) {
      return run(*backend, {.op = Op::gradient_squares, .name = "squares", .in = std::move(in)}).out[0];
    };
    const Tensor low = squares_of({piece(0, 3072)}), high = squares_of({piece(3072, 9000), y});
    Tensor all(DType::f64, {10});
    for (int64_t i = 0; i < 3; ++i) all.set(i, low.at(i));
    for (int64_t i = 0; i < 7; ++i) all.set(3 + i, high.at(i));
    const OpCase norm{
        .op = Op::norm_of_squares, .name = "norm", .in = {all}, .attrs = make_attrs(Op::norm_of_squares, {{"tensors", Ints{0, 9, 9, 1}}})};
    const OpCase whole{.op = Op::gradient_norm, .name = "whole", .in = {x, y}};
    EXPECT_EQ(run(*backend, norm).out[0].at(0), run(*backend, whole).out[0].at(0)) << candidate.name;
  }
}

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

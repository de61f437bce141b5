#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>

#include "backend/gradient_norm_order.h"
#include "conformance.h"

namespace st::conformance {
namespace {

// The order of the fp64 sums is fixed (traps.md, order of sums 4): the same bits everywhere.
const Cases gradient_norm_cases(Op::gradient_norm, {}, [](Suite& s) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const Shape& shape : shapes()) s.add({s.normal(shape)});
  for (const int64_t n : {1023, 1024, 1025, 3 * 1024, 5 * 1024 + 1, 100'000}) s.add({s.normal({n})});
  s.add({s.normal({3}), s.normal({1025}), s.normal({37, 29}), s.normal({0}), s.normal({1})});
  s.add({s.normal({67, 1031}), s.normal({7}), s.normal({1024}), s.normal({5, 50021})}).dtypes = {DType::f32};
  s.add({s.normal({99}, 1e-25)}).dtypes = {DType::f32};
  s.add({s.normal({99}, 1e25)}).dtypes = {DType::f32};
  s.add({s.normal({2000}), Tensor::of({2}, {1, nan})});
  s.add({Tensor::of({3}, {1, 2, -inf}), s.normal({2000})});
});

const Cases gradient_squares_cases(Op::gradient_squares, {}, [](Suite& s) {
  for (const int64_t n : {1, 1023, 1024, 1025, 5 * 1024 + 1, 100'000}) s.add({s.normal({n})}).dtypes = {DType::f32};
  s.add({s.normal({3}), s.normal({1025}), s.normal({37, 29}), s.normal({0}), s.normal({1})}).dtypes = {DType::f32};
  s.add({s.normal({67, 1031}), s.normal({7}), s.normal({1024}), s.normal({5, 50021})}).dtypes = {DType::f32};
  s.add({s.normal({99}, 1e25)}).dtypes = {DType::f32};
});

const Cases norm_of_squares_cases(Op::norm_of_squares, {}, [](Suite& s) {
  const Tensor blocks = Tensor::of({7}, {1, 0.1, 3, 1e-9, 5, 0.7, 1e20}, DType::f64);
  s.add({blocks}, {{"tensors", Ints{0, 7}}});
  s.add({blocks}, {{"tensors", Ints{}}});
  s.add({blocks}, {{"tensors", Ints{0, 3, 3, 0, 3, 1, 5, 2}}});
  s.add_special({Tensor::of({3}, {1, std::numeric_limits<double>::infinity(), 2}, DType::f64)}, {{"tensors", Ints{0, 1, 1, 2}}});
  s.add_special({Tensor::of({3}, {1, std::numeric_limits<double>::infinity(), 2}, DType::f64)}, {{"tensors", Ints{0, 1, 2, 1}}});
});

const Cases tensor_squares_cases(Op::tensor_squares, {}, [](Suite& s) {
  const Tensor blocks = Tensor::of({7}, {1, 0.1, 3, 1e-9, 5, 0.7, 1e20}, DType::f64);
  s.add({blocks}, {{"tensors", Ints{0, 7}}});
  s.add({blocks}, {{"tensors", Ints{}}});
  s.add({blocks}, {{"tensors", Ints{0, 3, 3, 0, 3, 1, 5, 2}}});
});

// Ranks that hold shards of the gradients, in whole blocks, all get the norm of all gradients.
TEST(GradientNorm, FromShardedSquaresHasTheSameBits) {
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
    // Stages that each have some of the tensors exchange the tensors' sums.
    const auto sums_of = [&](Ints tensors) {
      return run(*backend, {.op = Op::tensor_squares,
                            .name = "sums",
                            .in = {all},
                            .attrs = make_attrs(Op::tensor_squares, {{"tensors", std::move(tensors)}})})
          .out[0];
    };
    const Tensor sums = Tensor::of({2}, {sums_of({0, 9, 0, 0}).at(0), sums_of({0, 0, 9, 1}).at(1)}, DType::f64);
    const OpCase of_sums{
        .op = Op::norm_of_squares, .name = "norm", .in = {sums}, .attrs = make_attrs(Op::norm_of_squares, {{"tensors", Ints{0, 1, 1, 1}}})};
    EXPECT_EQ(run(*backend, of_sums).out[0].at(0), run(*backend, whole).out[0].at(0)) << candidate.name;
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
      for (const int64_t at : {0, 1023, 1024, 30000, 50020}) {
        Tensor x(DType::f32, {50021});
        x.set(at, bad);
        const OpCase c{.op = Op::gradient_norm, .name = "bad", .in = {Tensor(DType::f32, {7}), x}};
        EXPECT_EQ(run(*backend, c).out[1].at(0), 0) << candidate.name << ", " << bad << " at " << at;
      }
  }
}

// --- the order of the sums in gradient_norm_order.h

using namespace gradient_norm_order;

std::vector<double> random_gradient(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(normal(random) * std::pow(10.0, normal(random)));
  return values;
}

std::vector<double> random_sums(int64_t n) {
  std::vector<double> sums = random_gradient(n, 5);
  for (double& sum : sums) sum = std::fabs(sum);
  return sums;
}

// The header's definition, literally: split at the largest power of two below n.
double split_tree(std::span<const double> blocks) {
  if (blocks.empty()) return 0;
  if (blocks.size() == 1) return blocks[0];
  const size_t half = std::bit_ceil(blocks.size()) / 2;
  return split_tree(blocks.first(half)) + split_tree(blocks.subspan(half));
}

double tree(std::span<const double> blocks) {
  BlockTree tree;
  for (const double block : blocks) tree.add(block);
  return tree.sum();
}

TEST(GradientNormOrder, SplitsBlocksAtTheLargestPowerOfTwo) {
  const std::vector<double> blocks = random_sums(130);
  for (size_t n = 0; n <= blocks.size(); ++n) EXPECT_EQ(tree(std::span(blocks).first(n)), split_tree(std::span(blocks).first(n))) << n;
}

TEST(GradientNormOrder, LevelByLevelGivesTheSameBits) {
  std::vector<double> level = random_sums(107);
  const double want = tree(level);
  while (level.size() > 1) {
    std::vector<double> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = next;
  }
  EXPECT_EQ(level[0], want);
}

TEST(GradientNormOrder, AddsSixteenLanesAndThenTheirHalves) {
  const std::vector<double> x = random_gradient(1000, 9);
  std::array<double, 16> lanes{};
  for (size_t lane = 0; lane < 16; ++lane) {
    for (size_t i = lane; i < x.size(); i += 16) lanes[lane] += x[i] * x[i];
  }
  const auto pair = [&](size_t i) { return lanes[i] + lanes[i + 8]; };
  const auto four = [&](size_t i) { return pair(i) + pair(i + 4); };
  const double want = (four(0) + four(2)) + (four(1) + four(3));
  EXPECT_EQ(sum_of_block(1000, [&](int64_t i) { return x[static_cast<size_t>(i)]; }), want);
}

TEST(ReferenceGradientNorm, EqualsTheNaiveNormTo1e12) {
  std::vector<Tensor> gradients;
  for (const int64_t n : {1, 5000, 0, 70001})
    gradients.push_back(Tensor::of({n}, random_gradient(n, static_cast<uint32_t>(n) + 1), n == 70001 ? DType::f64 : DType::f32));
  long double squares = 0;
  for (const Tensor& gradient : gradients)
    for (int64_t i = 0; i < gradient.elements(); ++i) squares += static_cast<long double>(gradient.at(i)) * gradient.at(i);
  const double want = static_cast<double>(std::sqrt(squares));
  const auto out = run_on_reference(Op::gradient_norm, gradients).out;
  EXPECT_NEAR(out[0].at(0), want, 1e-12 * want);
  EXPECT_EQ(out[1].at(0), 1);
}

TEST(ReferenceGradientNorm, AddsTheTreesOfTensorsInOrder) {
  const std::vector<double> a = random_gradient(5 * kBlock + 17, 1), b = random_gradient(3 * kBlock - 1, 2);
  double squares = 0;
  for (const std::vector<double>* x : {&a, &b}) {
    std::vector<double> blocks;
    for (int64_t from = 0; from < std::ssize(*x); from += kBlock) {
      const int64_t n = std::min(kBlock, std::ssize(*x) - from);
      blocks.push_back(sum_of_block(n, [&](int64_t i) { return (*x)[static_cast<size_t>(from + i)]; }));
    }
    squares += split_tree(blocks);
  }
  const auto tensor = [](const std::vector<double>& x) { return Tensor::of({std::ssize(x)}, x, DType::f64); };
  EXPECT_EQ(run_on_reference(Op::gradient_norm, {tensor(a), tensor(b)}).out[0].at(0), std::sqrt(squares));
}

TEST(ReferenceGradientNorm, DoesNotTakeAnOverflowOfTheSquareForInfinity) {
  const auto out = run_on_reference(Op::gradient_norm, {Tensor::of({2}, {1e200, 1}, DType::f64)}).out;
  EXPECT_EQ(out[0].at(0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(out[1].at(0), 1);
}

}  // namespace
}  // namespace st::conformance

// sum, mean, max and argmax of the CUDA plug-in on the simulated grid: rows, columns, axes that alternate, in one piece and in several.
#include <gtest/gtest.h>

#include "simulated_errors.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

struct OverAxes {
  Shape x;
  Ints axes;
};
const OverAxes kOverCases[] = {
    {{}, {}},          {{37}, {}},      {{3, 37}, {1}},         {{3, 37}, {0}},         {{64, 24}, {0}},          {{65, 24}, {0}},
    {{9, 300}, {0}},   {{7, 601}, {0}}, {{1, 601}, {0}},        {{3, 70, 6}, {1}},      {{2, 200, 70}, {1}},      {{5, 3001}, {1}},
    {{2, 40000}, {1}}, {{40001}, {}},   {{2, 3, 4, 5}, {1, 3}}, {{2, 3, 4, 5}, {0, 2}}, {{2, 40, 2, 40}, {1, 3}}, {{0, 3}, {1}},
    {{3, 0}, {0}}};
constexpr DType kReducedTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

Shape reduced(const OverAxes& over) {
  Shape y;
  for (int32_t i = 0; i < over.x.rank(); ++i)
    if (!over.axes.empty() && !std::ranges::count(over.axes, i)) y.push_back(over.x[i]);
  return y;
}

class ReductionKernels : public ErrorTest {};

TEST_F(ReductionKernels, SumsAreAsExactAsTheCpus) {
  for (const DType dtype : kReducedTypes)
    for (const OverAxes& over : kOverCases)
      for (const Op op : {Op::sum, Op::mean})
        expect_error_of_the_cpu(op, {{dtype, reduced(over)}}, {uniform_values(dtype, over.x, -1, 2, 1)}, {{"axes", over.axes}}, false, true,
                                dtype == DType::f64 ? 64 : 1);  // the reference computes in fp64 too
}

TEST_F(ReductionKernels, SumsOfNothingAreZeroAndTheirMeanIsNaN) {
  for (const OverAxes& over : {OverAxes{{3, 0}, {1}}, OverAxes{{0, 3}, {0}}}) {
    const auto result = [&](Op op) {
      return results(By::device, op, {{DType::f32, reduced(over)}}, {Values{DType::f32, over.x, {}}}, {{"axes", over.axes}})[0].at;
    };
    EXPECT_EQ(result(Op::sum), (std::vector<double>{0, 0, 0}));
    for (const double each : result(Op::mean)) EXPECT_TRUE(std::isnan(each));
  }
}

// As the cpu's: the mean of numbers near the end of the range is finite, and an infinite one stays so.
TEST_F(ReductionKernels, MeansOfTheLargestAreFinite) {
  for (const OverAxes& over : kOverCases) {
    if (over.x.elements() == 0) continue;
    Values x = {DType::f32, over.x, std::vector<double>(static_cast<size_t>(over.x.elements()), 0x1.8p127)};
    const auto mean = [&] { return results(By::device, Op::mean, {{DType::f32, reduced(over)}}, {x}, {{"axes", over.axes}})[0].at; };
    for (const double each : mean()) ASSERT_NEAR(each, 0x1.8p127, 0x1p104) << text(over.x);
    x.at[0] = -INFINITY;
    const std::vector<double> with_infinity = mean();
    for (size_t i = 0; i < with_infinity.size(); ++i) ASSERT_EQ(std::isinf(with_infinity[i]), i == 0) << text(over.x);
  }
}

TEST_F(ReductionKernels, TheLargestIsThatOfTheCpu) {
  for (const DType dtype : kReducedTypes)
    for (const OverAxes& over : kOverCases)
      for (const double planted : {0.0, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
        if (over.x.elements() == 0) continue;
        Values x = uniform_values(dtype, over.x, -2, -1, 1);
        x.at[x.at.size() / 2] = planted;
        const auto result = [&](By by) { return results(by, Op::max, {{dtype, reduced(over)}}, {x}, {{"axes", over.axes}})[0].at; };
        const std::vector<double> made = result(By::device), wanted = result(By::cpu);
        for (size_t i = 0; i < made.size(); ++i)
          ASSERT_TRUE(made[i] == wanted[i] || (std::isnan(made[i]) && std::isnan(wanted[i])))
              << text(dtype, over.x) << ", " << i << ": " << made[i] << ", " << wanted[i];
      }
}

TEST_F(ReductionKernels, TheIndexOfTheLargestIsThatOfTheCpu) {
  const auto expect_index = [&](const Tensor& x, const Shape& y, int64_t axis) {
    expect_equal_to_the_cpu([](const KernelQueue& queue, const Call& call) { enqueue_argmax(queue, Op::argmax, call); }, Op::argmax,
                            {{DType::i32, y}}, {x}, {{"axis", axis}});
  };
  for (const DType dtype : kReducedTypes) {
    for (const int64_t n : {1, 3, 37, 300, 5000}) expect_index({dtype, {4, n}}, {4}, 1);
    for (const int64_t n : {1, 3, 200}) expect_index({dtype, {2, n, 9}}, {2, 9}, 1);
    expect_index({dtype, {0, 9}}, {0}, 1);
  }
}

TEST_F(ReductionKernels, TheFirstOfEqualElementsIsTheLargest) {
  for (const int64_t n : {5, 3000})
    for (const double value : {2.0, -static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
      Values x = {DType::f32, {1, n}, std::vector<double>(static_cast<size_t>(n), value)};
      const auto index = [&] { return results(By::device, Op::argmax, {{DType::i32, {1}}}, {x}, {})[0].at[0]; };
      EXPECT_EQ(index(), 0) << n << ", " << value;
      x.at[0] = -INFINITY;
      EXPECT_EQ(index(), std::isinf(value) ? 0 : 1) << n << ", " << value;
    }
}

TEST_F(ReductionKernels, OfIntegersAreRefused) {
  const Operand x = {{}, DType::i32, Shape({4})};
  const Attrs attrs = make_attrs(Op::sum, {});
  Call call;
  call.in = call.out = {&x, 1};
  call.attrs = &attrs;
  EXPECT_EQ(error_of([&] { enqueue_reduction(&stream_, Op::sum, call); }).message(),
            "sum: device cuda does not compute it in i32; cast first");
}

}  // namespace
}  // namespace st::cuda

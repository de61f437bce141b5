// Softmax, its logarithm and their gradients of the CUDA plug-in on the simulated grid: rows by warps and blocks, lines of other axes.
#include <gtest/gtest.h>

#include "simulated_errors.h"

namespace st::cuda {
namespace {

struct SoftmaxAlong {
  Shape shape;
  int64_t axis;
};
const SoftmaxAlong kSoftmaxCases[] = {{{37}, -1},     {{3, 37}, 0},  {{2, 3, 5}, 1},   {{3, 1}, -1}, {{70, 517}, 1}, {{5, 2050}, -1},
                                      {{2, 9000}, 1}, {{300, 7}, 0}, {{2, 40, 33}, 1}, {{0, 37}, 1}, {{37, 0}, 0}};
constexpr DType kSoftmaxTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

class SoftmaxKernels : public ErrorTest {};

TEST_F(SoftmaxKernels, AreAsExactAsTheCpus) {
  for (const DType dtype : kSoftmaxTypes)
    for (const auto& [shape, axis] : kSoftmaxCases)
      for (const Op op : {Op::softmax, Op::log_softmax})
        expect_error_of_the_cpu(op, {{dtype, shape}}, {uniform_values(dtype, shape, 10, 30, 1)}, {{"axis", axis}}, false, true,
                                dtype == DType::f64 ? 16 : 1);
}

TEST_F(SoftmaxKernels, GradientsAreAsExactAsTheCpus) {
  for (const DType dtype : kSoftmaxTypes)
    for (const auto& [shape, axis] : kSoftmaxCases) {
      const Values x = uniform_values(dtype, shape, -3, 3, 1), dy = uniform_values(dtype, shape, -1, 1, 2);
      for (const auto& [op, backward] :
           {std::pair{Op::softmax, Op::softmax_backward}, std::pair{Op::log_softmax, Op::log_softmax_backward}}) {
        const Values y = results(By::cpu, op, {{dtype, shape}}, {x}, {{"axis", axis}})[0];
        expect_error_of_the_cpu(backward, {{dtype, shape}}, {y, dy}, {{"axis", axis}}, false, true, dtype == DType::f64 ? 16 : 1);
      }
    }
}

TEST_F(SoftmaxKernels, MaskedElementsAreZerosAndNaNStays) {
  for (const int64_t n : {4, 3000}) {
    Values x = uniform_values(DType::f32, {3, n}, -1, 1, 1);
    x.at[0] = -INFINITY;
    x.at[static_cast<size_t>(2 * n - 1)] = NAN;
    for (size_t i = static_cast<size_t>(2 * n); i < x.at.size(); ++i) x.at[i] = -INFINITY;
    const std::vector<double> y = results(By::device, Op::softmax, {{DType::f32, x.shape}}, {x}, {})[0].at;
    EXPECT_EQ(y[0], 0);
    for (int64_t i = 1; i < 3 * n; ++i) EXPECT_EQ(std::isnan(y[static_cast<size_t>(i)]), i >= n) << i;
  }
}

}  // namespace
}  // namespace st::cuda

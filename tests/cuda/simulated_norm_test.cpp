// The norms of the CUDA plug-in on the simulated grid: rows by warps and by blocks, with rows that vectors do not divide, gradients of
// gamma and beta over one tile of rows and over several in a block, sums of columns in shared memory and in the workspace.
#include <gtest/gtest.h>

#include "backend/cuda/norm_blocks.h"
#include "simulated_errors.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

struct NormTypes {
  DType x, scales;
  DType statistics() const { return x == DType::f64 ? DType::f64 : DType::f32; }
};
constexpr NormTypes kNormTypes[] = {{DType::f32, DType::f32},  {DType::f64, DType::f64}, {DType::bf16, DType::bf16},
                                    {DType::bf16, DType::f32}, {DType::f16, DType::f16}, {DType::f16, DType::f32}};
const Shape kNormShapes[] = {{1, 1}, {3, 37}, {17, 64}, {5, 1030}, {2, 2050}, {0, 8}};

class NormKernels : public ErrorTest {
 protected:
  void expect_error(Op op, const std::vector<Tensor>& ys, const std::vector<Values>& xs, const Attrs& attrs = {}) {
    // The reference computes in fp64 too.
    expect_error_of_the_cpu(op, ys, xs, attrs, false, true, xs[0].dtype == DType::f64 ? 16 : 1);
  }
  void expect_norm(const NormTypes& types, const Shape& shape, double low, double high) {
    const Shape width = {shape.last()}, rows = {shape[0]};
    const Values x = uniform_values(types.x, shape, low, high, 1), gamma = uniform_values(types.scales, width, -2, 2, 2),
                 beta = uniform_values(types.scales, width, -2, 2, 3);
    const DType statistics = types.statistics();
    expect_error(Op::layer_norm, {{types.x, shape}, {statistics, rows}, {statistics, rows}}, {x, gamma, beta});
    expect_error(Op::rms_norm, {{types.x, shape}, {statistics, rows}}, {x, gamma}, {{"epsilon", 0.1}});
  }
  /// With the statistics of the cpu's forward op.
  void expect_gradients(const NormTypes& types, const Shape& shape) {
    const Shape width = {shape.last()}, rows = {shape[0]};
    const DType statistics = types.statistics();
    const Values x = uniform_values(types.x, shape, -2, 4, 1), gamma = uniform_values(types.scales, width, -2, 2, 2),
                 dy = uniform_values(types.x, shape, -1, 1, 4);
    const std::vector<Tensor> ys = {{types.x, shape}, {statistics, rows}, {statistics, rows}};
    const std::vector<Values> forward = results(By::cpu, Op::layer_norm, ys, {x, gamma, gamma}, {});
    const Tensor dx = {types.x, shape}, sums = {types.scales, width};
    expect_error(Op::layer_norm_backward, {dx, sums, sums}, {x, gamma, forward[1], forward[2], dy});
    expect_error(Op::rms_norm_backward, {dx, sums}, {x, gamma, forward[2], dy});
  }
};

TEST_F(NormKernels, AreAsExactAsTheCpus) {
  for (const NormTypes& types : kNormTypes)
    for (const Shape& shape : kNormShapes) expect_norm(types, shape, -2, 4);
  expect_norm(kNormTypes[0], {2, 9000}, -2, 4);  // longer than shared memory
}

TEST_F(NormKernels, AreExactFarFromZero) {
  for (const Shape& shape : {Shape{5, 200}, Shape{3, 9000}}) expect_norm({DType::f32, DType::f32}, shape, 1e4, 1e4 + 8);
}

TEST_F(NormKernels, GradientsAreAsExactAsTheCpus) {
  for (const NormTypes& types : kNormTypes)
    for (const Shape& shape : kNormShapes) expect_gradients(types, shape);
  for (const Shape& shape : {Shape{2100, 9}, Shape{2, 4100}}) expect_gradients(kNormTypes[0], shape);
}

// Rows whose squares leave fp32's range, next to ordinary rows: the same formula in fp64.
TEST_F(NormKernels, HaveNoRangeOfSquares) {
  const auto row_of = [](const Values& all, size_t row, size_t columns) {
    const auto first = all.at.begin() + static_cast<int64_t>(row * columns);
    return Values{all.dtype, {static_cast<int64_t>(columns)}, {first, first + static_cast<int64_t>(columns)}};
  };
  for (const int64_t columns : {37, 2050}) {
    const Shape shape = {4, columns}, width = {columns}, rows = {4};
    Values x = uniform_values(DType::f32, shape, -1, 1, 1);
    for (size_t i = 0; i < x.at.size(); ++i) x.at[i] *= std::array{1.0, 0x1p100, 0x1p-100, 0x1p126}[i / static_cast<size_t>(columns)];
    const Values gamma = uniform_values(DType::f32, width, -2, 2, 2), dy = uniform_values(DType::f32, shape, -1, 1, 4);
    const Attrs attrs = {{"epsilon", 0.0}};
    const std::vector<Tensor> ys = {{DType::f32, shape}, {DType::f32, rows}, {DType::f32, rows}};
    const std::vector<Values> made = results(By::device, Op::layer_norm, ys, {x, gamma, gamma}, attrs),
                              exact = results(By::reference, Op::layer_norm, ys, {x, gamma, gamma}, attrs);
    EXPECT_LE(worst_error(made[0], exact[0], false), 8) << columns;
    const std::vector<Tensor> gradients = {{DType::f32, shape}, {DType::f32, width}, {DType::f32, width}};
    const auto gradients_of = [&](By by, const std::vector<Values>& forward) {
      std::vector<Values> in = {x, gamma, forward[1], forward[2], dy};
      if (by == By::reference)
        for (Values& each : in) each.dtype = DType::f64;
      return results(by, Op::layer_norm_backward, gradients, in, {});
    };
    const std::vector<Values> back = gradients_of(By::device, made), exact_back = gradients_of(By::reference, exact);
    for (size_t r = 0; r < 4; ++r) {  // dx is as large as 1 / x; what is beyond fp32's range is a zero, or infinite
      const Values got = row_of(back[0], r, static_cast<size_t>(columns)), want = row_of(exact_back[0], r, static_cast<size_t>(columns));
      for (size_t i = 0; i < got.at.size(); ++i) {
        const double largest = *std::ranges::max_element(want.at, {}, [](double each) { return std::abs(each); });
        ASSERT_NEAR(got.at[i], want.at[i], std::abs(largest) * 0x1p-19 + 0x1p-126) << columns << ", row " << r << ", element " << i;
      }
    }
    for (const size_t sum : {1, 2}) EXPECT_LE(worst_error(back[sum], exact_back[sum], false), 8) << columns << ", sum " << sum;
  }
}

TEST_F(NormKernels, TakeAFixedNumberOfRowsForABlock) {
  EXPECT_EQ(row_blocks(0), 0);
  for (const int64_t rows : {1, 8, 9, 2048, 2049, 5000, 1000000}) {
    EXPECT_LE(row_blocks(rows), kMostRowBlocks) << rows;
    EXPECT_EQ(rows_of_block(rows) % kRowsOfTile, 0) << rows;
    EXPECT_GE(row_blocks(rows) * rows_of_block(rows), rows);
    EXPECT_LT((row_blocks(rows) - 1) * rows_of_block(rows), rows);
  }
}

TEST_F(NormKernels, OfIntegersAreRefused) {
  const Operand x = {{}, DType::i32, Shape({4})};
  Call call;
  call.in = call.out = {&x, 1};
  EXPECT_EQ(error_of([&] { enqueue_norm(&stream_, Op::rms_norm, call); }).message(),
            "rms_norm: device cuda does not compute it in i32; cast first");
}

}  // namespace
}  // namespace st::cuda

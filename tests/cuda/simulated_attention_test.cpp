// The CUDA plug-in's attention and its gradients on the simulated grid: their errors, heads of each tiling and wider ones, uneven tiles,
// groups, rows that see nothing.
#include <gtest/gtest.h>

#include <utility>

#include "simulated_errors.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

struct Case {
  int64_t batch, queries, keys, heads, groups, width;
};
// Below, at and above a tile of each tiling; widths that are not whole vectors; queries that see nothing; no keys and no queries; heads of
// several slices, the last of 3 columns.
constexpr Case kCases[] = {{2, 32, 32, 2, 2, 16},  {1, 33, 65, 4, 2, 20}, {1, 70, 70, 2, 1, 64},  {1, 17, 9, 2, 2, 5},
                           {1, 40, 40, 2, 2, 128}, {1, 19, 35, 3, 1, 97}, {1, 21, 21, 1, 1, 256}, {2, 9, 18, 2, 1, 131},
                           {1, 3, 0, 2, 1, 8},     {1, 0, 5, 2, 2, 8},    {1, 18, 19, 2, 1, 288}, {1, 9, 21, 2, 2, 300},
                           {1, 5, 3, 1, 1, 515}};

class AttentionKernels : public ErrorTest {
 protected:
  /// size: of the gradients of the output.
  void expect_errors_of_the_cpu(const Case& c, DType dtype, const Attrs& attrs, double size = 1) {
    const DType statistic = dtype == DType::f64 ? DType::f64 : DType::f32;
    const Shape query = {c.batch, c.queries, c.heads, c.width}, key = {c.batch, c.keys, c.groups, c.width};
    const Shape row = {c.batch, c.heads, c.queries};
    std::vector<Values> in = {uniform_values(dtype, query, -2, 2, 1), uniform_values(dtype, key, -1, 1, 2),
                              uniform_values(dtype, key, -1, 1, 3)};
    const std::vector<Tensor> forward = {{dtype, query}, {statistic, row}};
    // The cpu does not compute fp64. The reference does, with an error of its own: exponentials of rounded scores, sums of up to 70 rows.
    const bool by_cpu = dtype != DType::f64;
    const double least = by_cpu ? 1 : 64;
    expect_error_of_the_cpu(Op::attention, forward, in, attrs, false, by_cpu, least);
    for (const Values& made : results(By::device, Op::attention, forward, in, attrs)) in.push_back(made);
    in.push_back(uniform_values(dtype, query, -size, size, 4));
    expect_error_of_the_cpu(Op::attention_backward, {{dtype, query}, {dtype, key}, {dtype, key}}, in, attrs, false, by_cpu, least);
  }
};

TEST_F(AttentionKernels, HaveTheErrorOfTheCpu) {
  int number = 0;
  for (const Case& c : kCases)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64})
      for (const bool causal : {true, false})
        if (causal || dtype == DType::f32)  // a large score magnifies its rounding in the exponential
          if (!kSanitized || ++number % 2 == 0)
            expect_errors_of_the_cpu(c, dtype, {{"causal", causal}, {"scale", c.width > 256 ? 0.1 : 0.3}});
}

// 16-bit operands by tensor cores: several tiles of keys and of queries, widths below a tile's, groups.
TEST_F(AttentionKernels, HaveTheErrorOfTheCpuByTensorCores) {
  for (const Case& c : {Case{1, 65, 130, 4, 2, 64}, Case{1, 97, 70, 2, 1, 128}, Case{2, 33, 33, 3, 3, 80}, Case{1, 1, 70, 6, 2, 40}})
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const bool causal : {true, false}) expect_errors_of_the_cpu(c, dtype, {{"causal", causal}, {"scale", 0.3}});
}

// Gradients of any size that fp16 has keep their relative precision, though weights and scores are rounded to it on the way.
TEST_F(AttentionKernels, HaveTheErrorOfTheCpuForSmallAndLargeGradients) {
  const Case c = {1, 80, 80, 2, 1, 64};
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const double size : {1e-4, 2000.0}) expect_errors_of_the_cpu(c, dtype, {{"causal", true}, {"scale", 0.0}}, size);
}

TEST_F(AttentionKernels, HaveTheErrorOfTheCpuIfTensorCoresCutSums) {
  const simulated::CutSums cut;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    expect_errors_of_the_cpu({1, 33, 70, 2, 1, 64}, dtype, {{"causal", false}, {"scale", 0.3}});
    expect_errors_of_the_cpu({1, 20, 40, 1, 1, 128}, dtype, {{"causal", true}, {"scale", 0.3}}, 2000);
  }
}

// Keys masked by -inf in a column where queries have 1, of more keys than a tile has: with each kernel. Before them, queries see nothing
// else.
TEST_F(AttentionKernels, GiveZeroWhereAllScoresAreMinusInfinity) {
  constexpr int64_t kRows = 66, kPadding = 65;
  for (const int64_t width : {8, 97, 288})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      const Shape x = {1, kRows, 1, width};
      std::vector<Values> in = {uniform_values(dtype, x, -2, 2, 1), uniform_values(dtype, x, -1, 1, 2), uniform_values(dtype, x, -1, 1, 3)};
      for (int64_t t = 0; t < kRows; ++t) {
        in[0].at[static_cast<size_t>(t * width)] = 1;
        in[1].at[static_cast<size_t>(t * width)] = t < kPadding ? -INFINITY : 0;
      }
      for (const Values& made :
           results(By::device, Op::attention, {{dtype, x}, {dtype == DType::f64 ? dtype : DType::f32, {1, 1, kRows}}}, in, {}))
        in.push_back(made);
      for (int64_t t = 0; t < kRows; ++t) EXPECT_EQ(in[4].at[static_cast<size_t>(t)] == -INFINITY, t < kPadding);
      in.push_back(uniform_values(dtype, x, -1, 1, 4));
      const std::vector<Values> gradients = results(By::device, Op::attention_backward, {{dtype, x}, {dtype, x}, {dtype, x}}, in, {});
      int64_t others = 0;
      for (const Values* const made : {&std::as_const(in)[3], &gradients[0], &gradients[1], &gradients[2]})
        for (int64_t i = 0; i < kPadding * width; ++i)
          if (made != &gradients[0] || i % width != 0) others += made->at[static_cast<size_t>(i)] != 0;  // in dq's, 0 times -inf
      EXPECT_EQ(others, 0) << name_of(dtype) << ", width " << width;
    }
}

TEST_F(AttentionKernels, AreRefusedForIntegers) {
  const Attrs attrs = make_attrs(Op::attention, {});
  const Operand x = {{}, DType::i32, Shape({1, 2, 1, 8})};
  const Operand in[] = {x, x, x}, out[] = {x, {{}, DType::f32, Shape({1, 1, 2})}};
  Call call;
  call.in = in;
  call.out = out;
  call.attrs = &attrs;
  const Error error = error_of([&] { enqueue_attention(&stream_, Op::attention, call); });
  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_EQ(error.message(), "attention: device cuda does not compute it in i32; cast first");
  EXPECT_EQ(error_of([&] { need({.device = "cuda"}, Op::attention, call); }).message(), error.message());
}

}  // namespace
}  // namespace st::cuda

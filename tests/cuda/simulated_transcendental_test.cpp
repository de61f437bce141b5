// The CUDA plug-in's kernels with exponentials, logarithms and powers, and rope, on the simulated grid: their errors, and the ends of the
// range.
#include <gtest/gtest.h>

#include "simulated_errors.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

constexpr DType kFour[] = {DType::f32, DType::bf16, DType::f16, DType::f64};

class TranscendentalKernels : public ErrorTest {
 protected:
  /// For numbers of any kind, both results are NaN, or the same infinity, or finite and either both zero or none; in f16 they may differ by
  /// its smallest number.
  void expect_ends_of_the_cpu(Op op, DType dtype, size_t inputs, const Attrs& given) {
    const Attrs attrs = make_attrs(op, given);
    const int64_t n = 1003;
    std::vector<Bytes> x;
    std::vector<Operand> in;
    for (size_t i = 0; i < inputs; ++i) {
      x.emplace_back(numbers(dtype, n, i + 1));
      in.push_back({address_of(x.back().data()), dtype, Shape({n})});
    }
    Bytes made(n * bytes_of(dtype)), wanted(n * bytes_of(dtype));
    const Operand out[] = {{address_of(made.data()), dtype, Shape({n})}, {address_of(wanted.data()), dtype, Shape({n})}};
    Call call;
    call.in = in;
    call.attrs = &attrs;
    call.out = {&out[0], 1};
    run_on_device(op, call);
    call.out = {&out[1], 1};
    run_on_cpu(op, call);
    made.taken();
    const double least = dtype == DType::f16 ? 0x1p-24 : 0;
    for (int64_t i = 0; i < n; ++i) {
      const double y = reference::get(out[0], i), z = reference::get(out[1], i);
      const bool is_alike = std::isnan(z)   ? std::isnan(y)
                            : std::isinf(z) ? y == z
                                            : std::isfinite(y) && ((y == 0) == (z == 0) || std::abs(y - z) == least);
      EXPECT_TRUE(is_alike) << text(name_of(op), " in ", dtype, ", element ", i, ": ", y, ", by the cpu ", z);
    }
  }
};

const Attrs kTanh = {{"approximate", std::string("tanh")}}, kErf = {{"approximate", std::string("erf")}};

TEST_F(TranscendentalKernels, HaveTheErrorOfTheCpu) {
  const std::tuple<Op, Attrs, double, double> kOps[] = {
      {Op::exp, {}, -60, 60},  {Op::exp, {}, -1, 1},   {Op::log, {}, 1e-3, 4}, {Op::log, {}, 0.99, 1.01}, {Op::gelu, kTanh, -4, 4},
      {Op::gelu, kErf, -4, 4}, {Op::silu, {}, -20, 9}, {Op::tanh, {}, -9, 9},  {Op::tanh, {}, -0.1, 0.1}, {Op::sigmoid, {}, -30, 30}};
  for (const auto& [op, attrs, low, high] : kOps)
    for (const DType dtype : kFour) {
      const double scale = dtype == DType::f16 && op == Op::exp ? 6 : 1;  // its range ends at e^11
      const Values x = uniform_values(dtype, {3001}, low / scale, high / scale, 1);
      expect_error_of_the_cpu(op, {{dtype, {3001}}}, {x}, attrs, true);
    }
}

TEST_F(TranscendentalKernels, OfTwoInputsHaveTheErrorOfTheCpu) {
  for (const DType dtype : kFour) {
    const Values x = uniform_values(dtype, {3001}, -7, 7, 2), dy = uniform_values(dtype, {3001}, -2, 2, 3);
    for (const Attrs& attrs : {kTanh, kErf}) expect_error_of_the_cpu(Op::gelu_backward, {{dtype, {3001}}}, {x, dy}, attrs, false);
    expect_error_of_the_cpu(Op::silu_backward, {{dtype, {3001}}}, {x, dy}, {}, false);
    const Values base = uniform_values(dtype, {37, 41}, 0.1, 3, 4), exponent = uniform_values(dtype, {41}, -7, 7, 5);
    expect_error_of_the_cpu(Op::pow, {{dtype, {37, 41}}}, {base, exponent}, {}, true);
  }
}

TEST_F(TranscendentalKernels, EndWhereTheCpuEnds) {
  for (const DType dtype : kFour) {
    for (const Op op : {Op::exp, Op::log, Op::silu, Op::tanh, Op::sigmoid}) expect_ends_of_the_cpu(op, dtype, 1, {});
    for (const Attrs& attrs : {kTanh, kErf}) {
      expect_ends_of_the_cpu(Op::gelu, dtype, 1, attrs);
      expect_ends_of_the_cpu(Op::gelu_backward, dtype, 2, attrs);
    }
    expect_ends_of_the_cpu(Op::silu_backward, dtype, 2, {});
    expect_ends_of_the_cpu(Op::pow, dtype, 2, {});
  }
}

TEST_F(TranscendentalKernels, OfIntegersAreRefused) {
  const Operand x = {{}, DType::i32, Shape({4})};
  Call call;
  call.in = call.out = {&x, 1};
  EXPECT_EQ(error_of([&] { enqueue_transcendental(&stream_, Op::exp, call); }).message(),
            "exp: device cuda does not compute it in i32; cast first");
}

TEST_F(TranscendentalKernels, RopeHasTheErrorOfTheCpu) {
  for (const DType dtype : kFour)
    for (const Shape& shape : {Shape{2, 7, 3, 8}, Shape{1, 37, 1, 6}, Shape{2, 33, 2, 64}, Shape{1, 3, 2, 2}})
      for (const bool inverse : {false, true}) {
        const Attrs attrs = {{"inverse", inverse}, {"offset", int64_t{inverse ? 100000 : 3}}};
        // In fp64 the rounding of the angle shows: it is that of the exact number of turns.
        if (dtype == DType::f64 && inverse) continue;
        expect_error_of_the_cpu(Op::rope, {{dtype, shape}}, {uniform_values(dtype, shape, -2, 2, 6)}, attrs, false);
      }
}

}  // namespace
}  // namespace st::cuda

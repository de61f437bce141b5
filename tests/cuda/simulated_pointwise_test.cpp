// The CUDA plug-in's elementwise kernels on the simulated grid: their bits are the cpu's, but for NaN, which may have other bits. Streams
// run late, so that what a launch borrows would be gone.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "backend/cuda/doubles.cuh"
#include "base/float_mode.h"
#include "simulated_kernels.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

class PointwiseKernels : public KernelTest {
 protected:
  PointwiseKernels() : KernelTest(Order::late) {}

  void expect_bits_of_the_cpu(Op op, const Tensor& y, const std::vector<Tensor>& xs, const Attrs& given = {}) {
    expect_equal_to_the_cpu([op](StreamHandle stream, const Call& call) { enqueue_pointwise(stream, op, call); }, op, {y}, xs, given);
  }
};

constexpr DType kAllFloats[] = {DType::f32, DType::bf16, DType::f16, DType::f64};
constexpr DType kIntegers[] = {DType::i32, DType::i64, DType::u8};
constexpr int64_t kLengths[] = {0, 1, 3, 4, 7, 8, 9, 2049};

/// Pairs of shapes and that to which they broadcast: a vector crosses rows, rows that are whole vectors, an input that stays in a row, one
/// of a single element, dimensions that merge and that do not, and an input that is larger than the other in one of them.
struct Pair {
  Shape a, b, y;
};
const std::vector<Pair>& pairs() {
  static const std::vector<Pair> all = {{{37, 5}, {5}, {37, 5}},
                                        {{9, 24}, {24}, {9, 24}},
                                        {{9, 24}, {9, 1}, {9, 24}},
                                        {{1}, {131}, {131}},
                                        {{131}, {}, {131}},
                                        {{1, 1}, {1}, {1, 1}},
                                        {{2, 3, 4, 8}, {3, 1, 8}, {2, 3, 4, 8}},
                                        {{5, 1, 6}, {1, 7, 1}, {5, 7, 6}},
                                        {{3, 2, 16}, {3, 1, 1}, {3, 2, 16}},
                                        {{0, 4}, {4}, {0, 4}}};
  return all;
}

TEST_F(PointwiseKernels, OfOneInputHaveTheBitsOfTheCpu) {
  const std::pair<Op, Attrs> kOps[] = {{Op::affine, {{"scale", -1.7}, {"shift", 0.3}}},
                                       {Op::affine, {{"scale", 1e-30}, {"shift", 0.0}}},
                                       {Op::sqrt, {}},
                                       {Op::abs, {}},
                                       {Op::neg, {}},
                                       {Op::sign, {}},
                                       {Op::clamp, {{"low", -0.7}, {"high", 1.3}}},
                                       {Op::clamp, {{"low", 1e-42}}},
                                       {Op::relu, {}}};
  for (const auto& [op, attrs] : kOps)
    for (const DType dtype : kAllFloats)
      for (const int64_t n : kLengths) expect_bits_of_the_cpu(op, {dtype, {n}}, {{dtype, {n}}}, attrs);
}

TEST_F(PointwiseKernels, OfTwoInputsHaveTheBitsOfTheCpu) {
  for (const Op op :
       {Op::add, Op::sub, Op::mul, Op::div, Op::minimum, Op::maximum, Op::relu_backward, Op::tanh_backward, Op::sigmoid_backward})
    for (const DType dtype : kAllFloats)
      for (const int64_t n : kLengths) expect_bits_of_the_cpu(op, {dtype, {n}}, {{dtype, {n}}, {dtype, {n}}});
}

TEST_F(PointwiseKernels, BroadcastTheirInputs) {
  for (const Op op : {Op::sub, Op::div, Op::maximum})
    for (const DType dtype : kAllFloats)
      for (const auto& [a, b, y] : pairs()) {
        expect_bits_of_the_cpu(op, {dtype, y}, {{dtype, a}, {dtype, b}});
        expect_bits_of_the_cpu(op, {dtype, y}, {{dtype, b}, {dtype, a}});
      }
}

TEST_F(PointwiseKernels, OfIntegersWrapAround) {
  for (const Op op : {Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum})
    for (const DType dtype : kIntegers)
      for (const auto& [a, b, y] : pairs()) expect_bits_of_the_cpu(op, {dtype, y}, {{dtype, a}, {dtype, b}});
}

TEST_F(PointwiseKernels, CompareAndChooseLikeTheCpu) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean}) {
    for (const char* const test : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
      for (const Shape& shape : {Shape({700}), Shape({13})})
        expect_bits_of_the_cpu(Op::compare, {DType::boolean, shape}, {{dtype, shape}, {dtype, shape}}, {{"test", std::string(test)}});
    for (const auto& [a, b, y] : pairs()) {
      expect_bits_of_the_cpu(Op::compare, {DType::boolean, y}, {{dtype, a}, {dtype, b}}, {{"test", std::string("less")}});
      expect_bits_of_the_cpu(Op::where, {dtype, y}, {{DType::boolean, a}, {dtype, b}, {dtype, {}}});
      expect_bits_of_the_cpu(Op::where, {dtype, y}, {{DType::boolean, b}, {dtype, y}, {dtype, a}});
    }
  }
}

TEST_F(PointwiseKernels, MayWriteInThePlaceOfAnInput) {
  const int64_t n = 1001;
  Bytes a(numbers(DType::bf16, n, 1)), b(numbers(DType::bf16, n, 2)), wanted(n * 2);
  const Operand in[] = {{address_of(a.data()), DType::bf16, Shape({n})}, {address_of(b.data()), DType::bf16, Shape({n})}};
  const Operand apart = {address_of(wanted.data()), DType::bf16, Shape({n})};
  const Attrs none;
  Call call;
  call.in = in;
  call.attrs = &none;
  call.out = {&apart, 1};
  run_on_cpu(Op::sub, call);
  call.out = {&in[1], 1};
  enqueue_pointwise(&stream_, Op::sub, call);
  finish();
  EXPECT_EQ(differences(b.taken(), wanted.taken(), DType::bf16), 0);
}

TEST_F(PointwiseKernels, AccumulateAddsToASlotInItsType) {
  const std::pair<DType, DType> kTypes[] = {{DType::f32, DType::f32},   {DType::f32, DType::bf16}, {DType::f32, DType::f16},
                                            {DType::bf16, DType::bf16}, {DType::f16, DType::f16},  {DType::f64, DType::f64},
                                            {DType::i64, DType::i64}};
  for (const auto& [slot_type, value_type] : kTypes)
    for (const int64_t n : kLengths) {
      Bytes value(numbers(value_type, n, 1)), made(numbers(slot_type, n, 2)), wanted(numbers(slot_type, n, 2));
      const Operand in = {address_of(value.data()), value_type, Shape({n})};
      const Operand slots[] = {{address_of(made.data()), slot_type, Shape({n})}, {address_of(wanted.data()), slot_type, Shape({n})}};
      const Attrs none;
      Call call;
      call.in = {&in, 1};
      call.attrs = &none;
      call.reads = call.writes = {&slots[0], 1};
      enqueue_pointwise(&stream_, Op::accumulate, call);
      finish();
      call.reads = call.writes = {&slots[1], 1};
      run_on_cpu(Op::accumulate, call);
      EXPECT_EQ(differences(made.taken(), wanted.taken(), slot_type), 0) << text(value_type, " to ", slot_type, ", ", n);
    }
}

TEST_F(PointwiseKernels, TypesThatTheCpuDoesNotComputeAreRefused) {
  Bytes x(64);
  const auto refused = [&](Op op, DType in_type, DType out_type) {
    const Operand in[] = {{address_of(x.data()), in_type, Shape({4})}, {address_of(x.data()), in_type, Shape({4})}};
    const Operand out = {address_of(x.data()), out_type, Shape({4})};
    const Attrs attrs = make_attrs(op, {});
    Call call;
    call.in = in;
    call.out = call.writes = {&out, 1};
    call.attrs = &attrs;
    const Error error = error_of([&] { enqueue_pointwise(&stream_, op, call); });
    EXPECT_EQ(error.code(), Code::unsupported);
    return error.message();
  };
  EXPECT_EQ(refused(Op::div, DType::i32, DType::i32), "div: device cuda does not compute it in i32; cast first");
  EXPECT_EQ(refused(Op::add, DType::boolean, DType::boolean), "add: device cuda does not compute it in bool; cast first");
  EXPECT_EQ(refused(Op::relu, DType::u8, DType::u8), "relu: device cuda does not compute it in u8; cast first");
  EXPECT_EQ(refused(Op::accumulate, DType::f32, DType::bf16),
            "accumulate: device cuda cannot add f32 to a slot of bf16; cast the value first");
}

/// A device has no mode that makes zeros of fp64 below the normal range; neither has this test, until it asks the processor for one.
TEST(Doubles, HaveTheBitsOfTheModeWithoutIt) {
  std::mt19937_64 random(7);
  std::vector<std::pair<double, double>> given = {{0x1.fffffffffffffp-501, 0x1p-522},  {0x1.fffffffffffffp-512, 0x1.0000000000001p-511},
                                                  {0x1.fffffffffffffp-1022, 0x1p+1},   {0x1p-1022, 0x1.0000000000001p+0},
                                                  {0x1.fffffffffffffp-501, -0x1p+521}, {0.0, -0x1p-1000}};
  for (const uint64_t a : special_bits(DType::f64))
    for (const uint64_t b : special_bits(DType::f64)) given.emplace_back(std::bit_cast<double>(a), std::bit_cast<double>(b));
  for (int i = 0; i < 20000; ++i) {  // products and quotients around 2^-1022
    const uint64_t middle = 500 + random() % 20, fraction = random() & 0x800FFFFFFFFFFFFF, other = random() & 0x800FFFFFFFFFFFFF;
    given.emplace_back(std::bit_cast<double>(fraction | middle << 52),
                       std::bit_cast<double>(other | (i % 2 == 0 ? 1024 - middle + random() % 3 : 1023 + middle - random() % 3) << 52));
  }
  const auto same = [](double made, double wanted) {
    return std::bit_cast<uint64_t>(made) == std::bit_cast<uint64_t>(wanted) || (made != made && wanted != wanted);
  };
  int64_t below = 0;
  for (const auto& [x, y] : given) {
    const volatile double a = x, b = y;
    const double made[] = {plus(a, b), plus(a, -b), times(a, b), over(a, b), root(a)};
    const bool is_made_less = is_less(a, b);
    const FloatMode mode;
    const volatile double sum = a + b, difference = a - b, product = a * b, quotient = a / b;
    const double wanted[] = {sum, difference, product, quotient, std::sqrt(a)};
    for (size_t i = 0; i < std::size(made); ++i) {
      EXPECT_TRUE(same(made[i], wanted[i])) << i << ": " << x << ", " << y << ": " << made[i] << ", not " << wanted[i];
      below += wanted[i] == 0;
    }
    EXPECT_EQ(is_made_less, a < b);
  }
  EXPECT_GT(below, 1000);
}

}  // namespace
}  // namespace st::cuda

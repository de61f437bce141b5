// Dropout of the CUDA plug-in on the simulated grid: the cpu's mask and bits, wherever samples and Philox blocks begin.
#include <gtest/gtest.h>

#include "simulated_kernels.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

class DropoutKernels : public KernelTest {
 protected:
  DropoutKernels() : KernelTest(Order::late) {}

  void expect_bits_of_the_cpu(DType dtype, const Shape& shape, const Attrs& attrs) {
    expect_equal_to_the_cpu([](StreamHandle stream, const Call& call) { enqueue_dropout(stream, Op::dropout, call); }, Op::dropout,
                            {{dtype, shape}}, {{dtype, shape}, {DType::i64, {2}}}, attrs);
  }
};

TEST_F(DropoutKernels, HaveTheBitsOfTheCpu) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    for (const double rate : {0.0, 0.1, 0.9})
      for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{5}, Shape{4, 3, 5}, Shape{3, 64}, Shape{2, 1028}, Shape{7, 301}})
        expect_bits_of_the_cpu(dtype, shape, {{"rate", rate}, {"site", int64_t{3}}, {"seed", int64_t{-11}}});
    for (const int64_t per_sample : {37, 12, 40})
      for (const int64_t first : {0, 1, 4, 74, 1000})
        expect_bits_of_the_cpu(dtype, {10, 37}, {{"rate", 0.5}, {"sample_elements", per_sample}, {"first", first}});
  }
}

TEST_F(DropoutKernels, OfIntegersAreRefused) {
  const Operand x = {{}, DType::i32, Shape({4})};
  Call call;
  call.in = call.out = {&x, 1};
  EXPECT_EQ(error_of([&] { enqueue_dropout(&stream_, Op::dropout, call); }).message(),
            "dropout: device cuda does not compute it in i32; cast first");
}

}  // namespace
}  // namespace st::cuda

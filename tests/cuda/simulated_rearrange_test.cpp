// The CUDA plug-in's kernels that move elements on the simulated grid: the cpu's bits.
#include <gtest/gtest.h>

#include "simulated_kernels.h"

namespace st::cuda {
namespace {

constexpr DType kOfEachSize[] = {DType::u8, DType::bf16, DType::i32, DType::i64};

class RearrangeKernels : public KernelTest {
 protected:
  RearrangeKernels() : KernelTest(Order::late) {}

  void expect_bits_of_the_cpu(Op op, const std::vector<Shape>& ys, const std::vector<Shape>& xs, const Attrs& attrs) {
    for (const DType dtype : kOfEachSize) {
      std::vector<Tensor> in, out;
      for (const Shape& x : xs) in.push_back({dtype, x});
      for (const Shape& y : ys) out.push_back({dtype, y});
      expect_equal_to_the_cpu([op](StreamHandle stream, const Call& call) { enqueue_rearranged(stream, op, call); }, op, out, in, attrs);
    }
  }
};

TEST_F(RearrangeKernels, TransposeLikeTheCpu) {
  const std::pair<Shape, Ints> kCases[] = {{{5, 7}, {1, 0}},
                                           {{32, 64}, {1, 0}},
                                           {{33, 65}, {1, 0}},
                                           {{2, 3, 40}, {1, 0, 2}},
                                           {{2, 3, 5}, {1, 0, 2}},
                                           {{3, 4, 5, 6}, {0, 2, 1, 3}},
                                           {{3, 4, 5, 6}, {3, 2, 1, 0}},
                                           {{3, 4, 5, 6}, {0, 3, 1, 2}},
                                           {{2, 35, 3, 34}, {0, 2, 3, 1}},
                                           {{2, 35, 3, 34}, {3, 0, 1, 2}},
                                           {{1, 7, 1}, {2, 1, 0}},
                                           {{4, 6}, {0, 1}},
                                           {{0, 6}, {1, 0}},
                                           {{1, 1}, {1, 0}},
                                           {{}, {}}};
  for (const auto& [x, order] : kCases) {
    Shape y;
    for (const int64_t axis : order) y.push_back(x[static_cast<int32_t>(axis)]);
    expect_bits_of_the_cpu(Op::transpose, {y}, {x}, {{"order", order}});
  }
}

TEST_F(RearrangeKernels, RepeatLikeTheCpu) {
  const std::pair<Shape, Shape> kCases[] = {{{5}, {37, 5}}, {{24}, {9, 24}},           {{9, 1}, {9, 24}},
                                            {{}, {131}},    {{3, 1, 8}, {2, 3, 4, 8}}, {{4}, {0, 4}}};
  for (const auto& [x, y] : kCases) expect_bits_of_the_cpu(Op::broadcast_to, {y}, {x}, {{"shape", Ints(y.begin(), y.end())}});
}

TEST_F(RearrangeKernels, CutAndJoinLikeTheCpu) {
  for (const int64_t start : {0, 1, 3, 8}) {
    const int64_t end = start + 8;
    expect_bits_of_the_cpu(Op::slice, {{8}}, {{37}}, {{"axis", int64_t{0}}, {"start", start}, {"end", end}});
    expect_bits_of_the_cpu(Op::slice, {{3, 8, 5}}, {{3, 17, 5}}, {{"axis", int64_t{1}}, {"start", start}, {"end", end}});
    expect_bits_of_the_cpu(Op::slice, {{3, 4, 8}}, {{3, 4, 32}}, {{"axis", int64_t{-1}}, {"start", start}, {"end", end}});
  }
  expect_bits_of_the_cpu(Op::slice, {{0, 4}}, {{7, 4}}, {{"axis", int64_t{0}}, {"start", int64_t{5}}, {"end", int64_t{5}}});
  expect_bits_of_the_cpu(Op::split, {{3, 4}, {3, 0}, {3, 2}, {3, 3}}, {{3, 9}}, {{"axis", int64_t{-1}}, {"sizes", Ints{4, 0, 2, 3}}});
  expect_bits_of_the_cpu(Op::split, {{2, 16, 32}, {2, 8, 32}}, {{2, 24, 32}}, {{"axis", int64_t{1}}, {"sizes", Ints{16, 8}}});
  expect_bits_of_the_cpu(Op::concat, {{3, 9}}, {{3, 4}, {3, 0}, {3, 2}, {3, 3}}, {});
  expect_bits_of_the_cpu(Op::concat, {{2, 24, 32}}, {{2, 16, 32}, {2, 8, 32}}, {{"axis", int64_t{1}}});
  for (const int64_t before : {0, 1, 16})
    for (const int64_t after : {0, 3})
      expect_bits_of_the_cpu(Op::pad, {{3, 5 + before + after, 2}}, {{3, 5, 2}},
                             {{"axis", int64_t{1}}, {"before", before}, {"after", after}});
  expect_bits_of_the_cpu(Op::pad, {{3}}, {{0}}, {{"axis", int64_t{0}}, {"before", int64_t{1}}, {"after", int64_t{2}}});
  for (const int64_t rank : {0, 2}) expect_bits_of_the_cpu(Op::tensor_part, {{2, 5}}, {{6, 5}}, {{"rank", rank}, {"ranks", int64_t{3}}});
}

TEST_F(RearrangeKernels, StoreWritesItsSlot) {
  for (const int64_t elements : {0, 1, 8, 1001}) {
    Bytes value(numbers(DType::bf16, elements, 1)), slot(elements * 2);
    const Operand from = {address_of(value.data()), DType::bf16, Shape({elements})},
                  to = {address_of(slot.data()), DType::bf16, Shape({elements})};
    Call call;
    call.in = {&from, 1};
    call.writes = {&to, 1};
    enqueue_rearranged(&stream_, Op::store, call);
    finish();
    EXPECT_TRUE(slot.taken() == value.taken()) << elements;
  }
}

}  // namespace
}  // namespace st::cuda

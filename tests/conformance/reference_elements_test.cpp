// How the reference backend reads, rounds and compares elements.
#include <cmath>
#include <cstring>
#include <limits>

#include "conformance.h"

namespace st::conformance {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor vector_of(const std::vector<double>& values, DType dtype = DType::f64) {
  return Tensor::of({static_cast<int64_t>(values.size())}, values, dtype);
}

/// Exact: double cannot represent all of them.
Tensor longs_of(const std::vector<int64_t>& values) {
  Tensor x(DType::i64, {static_cast<int64_t>(values.size())});
  std::memcpy(x.bytes().data(), values.data(), x.bytes().size());
  return x;
}

Tensor first_of(Op op, const std::vector<Tensor>& in, const Attrs& attrs = {}) { return run_on_reference(op, in, attrs).out[0]; }
Tensor cast_to(const Tensor& x, const char* dtype) { return first_of(Op::cast, {x}, {{"dtype", std::string(dtype)}}); }

TEST(ReferenceElements, RoundADoubleToSixteenBitsOnce) {
  // Just above the middle of two bf16: rounding to f32 first would give the middle, which then rounds down to even.
  const double above = 1 + 0x1p-8 + 0x1p-40, below = 1 + 3 * 0x1p-8 - 0x1p-40;
  EXPECT_EQ(cast_to(vector_of({above, 1 + 0x1p-8, below, -above}), "bf16"),
            vector_of({1 + 0x1p-7, 1, 1 + 0x1p-7, -1 - 0x1p-7}, DType::bf16));
  EXPECT_EQ(cast_to(vector_of({1 + 0x1p-11 + 0x1p-40, 65520 - 0x1p-20, 65520, 1e300, 0x1p-25 + 0x1p-60}), "f16"),
            vector_of({1 + 0x1p-10, 65504, kUnbounded, kUnbounded, 0x1p-24}, DType::f16));
}

TEST(ReferenceElements, RoundALongIntegerToAFloatOnce) {
  // 2^62 + 2^38 is the middle of two floats; as a double the last 1 would be lost, and the tie would round down to even.
  const int64_t middle = (int64_t{1} << 62) + (int64_t{1} << 38);
  const double up = 0x1p62 + 0x1p39;
  EXPECT_EQ(cast_to(longs_of({middle + 1, middle, middle - 1, -middle - 1, -middle + 1}), "f32"),
            vector_of({up, 0x1p62, 0x1p62, -up, -0x1p62}, DType::f32));
}

TEST(ReferenceElements, TruncateFloatsHoldThemToTheRangeAndWrapIntegers) {
  EXPECT_EQ(cast_to(vector_of({-1.9, 1.9, 1e10, -kUnbounded, kNaN}), "i32"), vector_of({-1, 1, INT32_MAX, INT32_MIN, 0}, DType::i32));
  EXPECT_EQ(cast_to(vector_of({1e30, -0x1p63}), "i64"), longs_of({INT64_MAX, INT64_MIN}));
  EXPECT_EQ(cast_to(longs_of({(int64_t{1} << 32) + 5, -1}), "i32"), vector_of({5, -1}, DType::i32));
  EXPECT_EQ(cast_to(vector_of({0, -0.0, 0.25, kNaN}), "bool"), vector_of({0, 0, 1, 1}, DType::boolean));
}

TEST(ReferenceElements, AddLongIntegersExactlyAndWrapAround) {
  const int64_t large = (int64_t{1} << 60) + 1;  // not a double
  EXPECT_EQ(first_of(Op::add, {longs_of({large, INT64_MAX}), longs_of({1, 1})}), longs_of({large + 1, INT64_MIN}));
  EXPECT_EQ(first_of(Op::compare, {longs_of({large}), longs_of({large + 1})}, {{"test", std::string("less")}}).at(0), 1);
}

TEST(ReferenceElements, LetNaNWinInMinimumMaximumAndMax) {
  const Tensor a = vector_of({kNaN, 1, kNaN, 1}), b = vector_of({1, kNaN, kNaN, 2});
  for (const Op op : {Op::minimum, Op::maximum}) {
    const Tensor c = first_of(op, {a, b});
    for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(c.at(i))) << name_of(op);
    EXPECT_EQ(c.at(3), op == Op::minimum ? 1 : 2);
  }
  EXPECT_TRUE(std::isnan(first_of(Op::max, {b}).at(0)));
  for (const Op op : {Op::relu, Op::sign}) EXPECT_TRUE(std::isnan(first_of(op, {a}).at(0))) << name_of(op);
  EXPECT_TRUE(std::isnan(first_of(Op::clamp, {a}, {{"low", 0.0}, {"high", 1.0}}).at(0)));
}

TEST(ReferenceElements, FindTheFirstLargestAndTakeNaNForIt) {
  const Tensor x = Tensor::of({4, 3}, {1, 3, 3, kNaN, 9, kNaN, -1, -1, -1, 0, kNaN, 7}, DType::f64);
  EXPECT_EQ(first_of(Op::argmax, {x}), vector_of({1, 0, 0, 1}, DType::i32));
  EXPECT_EQ(first_of(Op::argmax, {Tensor::of({2, 2}, {1, 5, 2, 5}, DType::f64)}, {{"axis", int64_t{0}}}), vector_of({1, 0}, DType::i32));
}

TEST(ReferenceElements, MeanOfNothingIsNaNAndSumOfNothingIsZero) {
  const Tensor nothing(DType::f64, {0, 2});
  EXPECT_TRUE(std::isnan(first_of(Op::mean, {nothing}).at(0)));
  EXPECT_EQ(first_of(Op::sum, {nothing}, {{"axes", Ints{0}}}), vector_of({0, 0}));
}

TEST(ReferenceElements, AccumulateAddsInTheSlotsDtype) {
  const Tensor slot = vector_of({1, 0x1p24}, DType::f32);
  EXPECT_EQ(run_on_reference(Op::accumulate, {vector_of({0x1p-24, 1}, DType::f32)}, {}, {slot}).slots[0], slot);  // ties to even, as in f32
  const Tensor stored = vector_of({7, 8}, DType::f32);
  EXPECT_EQ(run_on_reference(Op::store, {stored}, {}, {slot}).slots[0], stored);
}

}  // namespace
}  // namespace st::conformance

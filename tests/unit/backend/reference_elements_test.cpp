// How the reference backend reads, rounds and compares elements.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/float16.h"
#include "reference_run.h"

namespace st {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
Array vector_of(const std::vector<T>& values) {
  return Array::of<T>({static_cast<int64_t>(values.size())}, values);
}

Array cast(const Array& x, const char* dtype) { return run(Op::cast, {x}, {{"dtype", std::string(dtype)}})[0]; }

TEST(ReferenceElements, RoundADoubleToSixteenBitsOnce) {
  // Just above the middle of two bf16: rounding to f32 first would land on the middle and then go down to even.
  const double above = 1 + 0x1p-8 + 0x1p-40, below = 1 + 3 * 0x1p-8 - 0x1p-40;
  const Array bf16 = cast(vector_of<double>({above, 1 + 0x1p-8, below, -above}), "bf16");
  EXPECT_EQ(f32_of_bf16(bf16.as<uint16_t>()[0]), 1 + 0x1p-7F);
  EXPECT_EQ(f32_of_bf16(bf16.as<uint16_t>()[1]), 1);
  EXPECT_EQ(f32_of_bf16(bf16.as<uint16_t>()[2]), 1 + 0x1p-7F);
  EXPECT_EQ(f32_of_bf16(bf16.as<uint16_t>()[3]), -1 - 0x1p-7F);
  const Array f16 = cast(vector_of<double>({1 + 0x1p-11 + 0x1p-40, 65520 - 0x1p-20, 65520, 1e300, 0x1p-25 + 0x1p-60}), "f16");
  EXPECT_EQ(f32_of_f16(f16.as<uint16_t>()[0]), 1 + 0x1p-10F);
  EXPECT_EQ(f32_of_f16(f16.as<uint16_t>()[1]), 65504);
  EXPECT_EQ(f32_of_f16(f16.as<uint16_t>()[2]), INFINITY);
  EXPECT_EQ(f32_of_f16(f16.as<uint16_t>()[3]), INFINITY);
  EXPECT_EQ(f32_of_f16(f16.as<uint16_t>()[4]), 0x1p-24F);
}

TEST(ReferenceElements, RoundALongIntegerToAFloatOnce) {
  // 2^62 + 2^38 is the middle of two floats; as a double, the last 1 would be lost and the tie would go down to even.
  const int64_t middle = (int64_t{1} << 62) + (int64_t{1} << 38);
  const std::vector<float> got =
      cast(vector_of<int64_t>({middle + 1, middle, middle - 1, -middle - 1, -middle + 1}), "f32").values<float>();
  const float up = 0x1p62F + 0x1p39F;
  EXPECT_EQ(got, (std::vector<float>{up, 0x1p62F, 0x1p62F, -up, -0x1p62F}));
}

TEST(ReferenceElements, TruncateFloatsHoldThemToTheRangeAndWrapIntegers) {
  EXPECT_EQ(cast(vector_of<double>({-1.9, 1.9, 1e10, -kUnbounded, kNaN}), "i32").values<int32_t>(),
            (std::vector<int32_t>{-1, 1, INT32_MAX, INT32_MIN, 0}));
  EXPECT_EQ(cast(vector_of<double>({1e30, -0x1p63}), "i64").values<int64_t>(), (std::vector<int64_t>{INT64_MAX, INT64_MIN}));
  EXPECT_EQ(cast(vector_of<int64_t>({(int64_t{1} << 32) + 5, -1}), "i32").values<int32_t>(), (std::vector<int32_t>{5, -1}));
  const Array boolean = cast(vector_of<double>({0, -0.0, 0.25, kNaN}), "bool");
  EXPECT_EQ(boolean.values<uint8_t>(), (std::vector<uint8_t>{0, 0, 1, 1}));
}

TEST(ReferenceElements, AddLongIntegersExactlyAndWrapAround) {
  const int64_t large = (int64_t{1} << 60) + 1;  // not a double
  EXPECT_EQ(run(Op::add, {vector_of<int64_t>({large, INT64_MAX}), vector_of<int64_t>({1, 1})})[0].values<int64_t>(),
            (std::vector<int64_t>{large + 1, INT64_MIN}));
  const Array less = run(Op::compare, {vector_of<int64_t>({large}), vector_of<int64_t>({large + 1})}, {{"test", std::string("less")}})[0];
  EXPECT_TRUE(less.as<bool>()[0]);
}

TEST(ReferenceElements, LetNaNWinInMinimumMaximumAndMax) {
  const Array a = vector_of<double>({kNaN, 1, kNaN, 1}), b = vector_of<double>({1, kNaN, kNaN, 2});
  for (const Op op : {Op::minimum, Op::maximum}) {
    const std::vector<double> c = run(op, {a, b})[0].values<double>();
    EXPECT_TRUE(std::isnan(c[0]) && std::isnan(c[1]) && std::isnan(c[2])) << name_of(op);
    EXPECT_EQ(c[3], op == Op::minimum ? 1 : 2);
  }
  EXPECT_TRUE(std::isnan(run(Op::max, {b})[0].as<double>()[0]));
  EXPECT_TRUE(std::isnan(run(Op::relu, {a})[0].as<double>()[0]));
  EXPECT_TRUE(std::isnan(run(Op::sign, {a})[0].as<double>()[0]));
  EXPECT_TRUE(std::isnan(run(Op::clamp, {a}, {{"low", 0.0}, {"high", 1.0}})[0].as<double>()[0]));
}

TEST(ReferenceElements, FindTheFirstLargestAndTakeNaNForIt) {
  const Array x = Array::of<double>({4, 3}, {1, 3, 3, kNaN, 9, kNaN, -1, -1, -1, 0, kNaN, 7});
  EXPECT_EQ(run(Op::argmax, {x})[0].values<int32_t>(), (std::vector<int32_t>{1, 0, 0, 1}));
  EXPECT_EQ(run(Op::argmax, {Array::of<double>({2, 2}, {1, 5, 2, 5})}, {{"axis", int64_t{0}}})[0].values<int32_t>(),
            (std::vector<int32_t>{1, 0}));
}

TEST(ReferenceElements, MeanOfNothingIsNaNAndSumOfNothingIsZero) {
  const Array nothing(DType::f64, {0, 2});
  EXPECT_TRUE(std::isnan(run(Op::mean, {nothing})[0].as<double>()[0]));
  EXPECT_EQ(run(Op::sum, {nothing}, {{"axes", Ints{0}}})[0].values<double>(), (std::vector<double>{0, 0}));
}

TEST(ReferenceElements, AccumulateAddsInTheSlotsDtype) {
  Array slot = Array::of<float>({2}, {1, 0x1p24F});
  run(Op::accumulate, {Array::of<float>({2}, {0x1p-24F, 1})}, {}, {&slot});
  EXPECT_EQ(slot.values<float>(), (std::vector<float>{1, 0x1p24F}));  // ties to even, as an f32 addition
  run(Op::store, {Array::of<float>({2}, {7, 8})}, {}, {&slot});
  EXPECT_EQ(slot.values<float>(), (std::vector<float>{7, 8}));
}

}  // namespace
}  // namespace st

// Arrays of a dtype that a call does not accept, converted on the host's request.
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "held.h"

namespace {

using namespace st::test;

const int64_t three[] = {3};

template <class T>
st_view view_of(st_dtype dtype, std::vector<T>& values) {
  return {dtype, 1, three, nullptr, values.data(), static_cast<int64_t>(sizeof(T) * values.size())};
}

TEST(ViewConvert, RoundsFloatingNumbersToTheNearest) {
  std::vector<double> from = {0.1, -1e300, 1 + 0x1p-24};
  std::vector<float> to(3);
  const st_view source = view_of(ST_F64, from), target = view_of(ST_F32, to);
  ASSERT_TRUE(works(st_view_convert(&source, &target)));
  EXPECT_EQ(to, (std::vector<float>{0.1F, -std::numeric_limits<float>::infinity(), 1}));
}

TEST(ViewConvert, TakesIntegersThatFitAndNamesTheFirstThatDoesNot) {
  std::vector<int64_t> from = {-7, INT32_MAX, 0};
  std::vector<int32_t> to(3);
  std::vector<float> real(3);
  const st_view source = view_of(ST_I64, from), target = view_of(ST_I32, to), floats = view_of(ST_F32, real);
  ASSERT_TRUE(works(st_view_convert(&source, &target)));
  EXPECT_EQ(to, (std::vector<int32_t>{-7, INT32_MAX, 0}));
  from[2] = int64_t{INT32_MAX} + 1;
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, st_view_convert(&source, &target), {"element 2 is 2147483648", "i32 holds -2147483648 to 2147483647"}));
  ASSERT_TRUE(works(st_view_convert(&source, &floats)));
  EXPECT_EQ(real, (std::vector<float>{-7, 0x1p31F, 0x1p31F}));
  EXPECT_TRUE(fails(ST_UNSUPPORTED, st_view_convert(&floats, &target), {"f32 is not converted to i32", "round"}));
}

TEST(ViewConvert, GoesByStridesThroughMoreThanAChunk) {
  constexpr int64_t kRows = 1500;
  const int64_t dims[] = {kRows, 2}, transposed[] = {1, kRows};
  std::vector<int32_t> from(2 * kRows);
  std::vector<double> to(2 * kRows);
  std::iota(from.begin(), from.end(), 0);
  const st_view source = {ST_I32, 2, dims, transposed, from.data(), 8 * kRows};
  st_view target = {ST_F64, 2, dims, nullptr, to.data(), 16 * kRows};
  ASSERT_TRUE(works(st_view_convert(&source, &target)));
  for (int64_t i = 0; i < 2 * kRows; ++i) ASSERT_EQ(to[static_cast<size_t>(i)], static_cast<double>(i / 2 + i % 2 * kRows)) << i;
  target.dims = three;
  target.rank = 1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_view_convert(&source, &target), {"shape [1500, 2]", "[3]"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_view_convert(&source, &source), {"share memory"}));
}

}  // namespace
